//! What a step writes to the log.

use std::sync::{Arc, Mutex};

use domain::Clock;
use persistence::{Lane, StoreError, Viewer};
use slurm::SlurmState;
use sqlx::PgPool;
use testkit::Fault;
use tracing::subscriber::DefaultGuard;

use super::Bench;
use crate::steps::batch::first_error;

/// The lines that this thread logs while it lives.
struct Lines {
    text: Arc<Mutex<Vec<u8>>>,
    _guard: DefaultGuard,
}

impl Lines {
    fn watch() -> Self {
        let text = Arc::new(Mutex::new(Vec::new()));
        let writer = Arc::clone(&text);
        let format = tracing_subscriber::fmt().with_writer(move || Writer(Arc::clone(&writer))).finish();
        Self { text, _guard: tracing::subscriber::set_default(format) }
    }

    fn count(&self, part: &str) -> usize {
        String::from_utf8_lossy(&self.text.lock().unwrap()).matches(part).count()
    }
}

struct Writer(Arc<Mutex<Vec<u8>>>);

impl std::io::Write for Writer {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

impl Bench {
    async fn run_and_give_up(&self) {
        let (id, name) = self.submitted().await;
        self.fake.set_state(&name, &SlurmState::Running, None);
        self.poll().await;
        self.worker.store.request_cancel(id, &Viewer::All, self.clock.now()).await.unwrap();
    }
}

#[sqlx::test(migrator = "persistence::MIGRATOR")]
async fn a_cancellation_that_slurm_did_not_take_is_not_logged_as_sent(pool: PgPool) {
    let bench = Bench::new(pool);
    bench.run_and_give_up().await;
    let lines = Lines::watch();
    for (fault, why) in [
        (Fault::SchedulerSilent, "Slurm refused a cancellation"),
        (Fault::Unreachable, "the cancellation failed"),
    ] {
        bench.fake.plan_fault(fault);
        assert_eq!(bench.step(Lane::Follow).await, 1);
        assert_eq!((lines.count(why), lines.count("cancellation sent")), (1, 0), "{fault:?}");
        bench.make_due().await;
    }
    assert_eq!(bench.step(Lane::Follow).await, 1);
    assert_eq!(lines.count("cancellation sent"), 1);
}

#[test]
fn no_error_of_steps_that_ran_side_by_side_is_dropped() {
    let lines = Lines::watch();
    let lost = |what: &str| Err(StoreError::LeaseLost { what: what.to_owned() });
    let first = first_error([Ok(()), lost("the first"), Ok(()), lost("the second"), lost("the third")]);
    assert!(first.unwrap_err().to_string().contains("the first"), "the caller logs this one");
    let logged = ["the first", "the second", "the third"].map(|what| lines.count(what));
    assert_eq!(logged, [0, 1, 1]);
    assert!(first_error([Ok(()), Ok(())]).is_ok());
}
