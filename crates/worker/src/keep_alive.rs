//! Extends a lease while its work waits for the cluster.

use std::{
    future::{Future, poll_fn},
    pin::pin,
    task::Poll,
    time::Duration,
};

use domain::Clock;
use persistence::StoreError;

/// Runs `work` under a lease that was requested at `since`, an uptime of `clock`, and extends it every third of its duration.
///
/// Returns none if the lease has run out: a process that was suspended starts nothing more on the cluster when it resumes. A
/// command that was sent goes on; its result would be refused, and the next holder of the lease looks for it. This only
/// saves work, because the clock stops with the machine. The protection is the token of the lease.
pub(crate) async fn keep_alive<T, E>(
    clock: &dyn Clock,
    since: Duration,
    duration: Duration,
    extend: impl Fn() -> E,
    work: impl Future<Output = T>,
) -> Option<T>
where
    E: Future<Output = Result<(), StoreError>>,
{
    let mut work = pin!(work);
    let mut until = since + duration;
    loop {
        let held = poll_fn(|context| {
            if clock.uptime() >= until {
                return Poll::Ready(None);
            }
            work.as_mut().poll(context).map(Some)
        });
        match tokio::time::timeout(duration / 3, held).await {
            Ok(None) => {
                tracing::warn!("a lease ran out before its work was done; the work stops");
                return None;
            }
            Ok(done) => return done,
            Err(_) => {
                let asked = clock.uptime();
                match extend().await {
                    Ok(()) => until = asked + duration,
                    Err(error) => tracing::warn!(error = %error, "a lease could not be extended"),
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU32, Ordering};

    use domain::Timestamp;
    use tokio::time::{Instant, advance, sleep};

    use super::*;

    const LEASE: Duration = Duration::from_secs(30);

    /// Counts as tokio's own time does.
    #[derive(Debug)]
    struct Began(Instant);

    impl Clock for Began {
        fn now(&self) -> Timestamp {
            Timestamp::UNIX_EPOCH + self.uptime()
        }

        fn uptime(&self) -> Duration {
            self.0.elapsed()
        }

        fn hear(&self, _: Timestamp, _: Duration) {}
    }

    fn clock() -> Began {
        Began(Instant::now())
    }

    #[tokio::test(start_paused = true)]
    async fn work_goes_on_as_long_as_its_lease_is_extended() {
        let extended = AtomicU32::new(0);
        let extend = || async {
            extended.fetch_add(1, Ordering::Relaxed);
            Ok(())
        };
        let done = keep_alive(&clock(), Duration::ZERO, LEASE, extend, sleep(LEASE * 3)).await;
        assert_eq!((done, extended.load(Ordering::Relaxed)), (Some(()), 8));
    }

    #[tokio::test(start_paused = true)]
    async fn work_that_wakes_up_after_its_lease_begins_nothing() {
        let begun = AtomicU32::new(0);
        let work = async {
            // Stopped here, and its timer is long due when it wakes up.
            sleep(Duration::from_secs(1)).await;
            begun.fetch_add(1, Ordering::Relaxed);
        };
        let clock = clock();
        let mut kept = pin!(keep_alive(&clock, Duration::ZERO, LEASE, || async { Ok(()) }, work));
        let waits = poll_fn(|context| Poll::Ready(kept.as_mut().poll(context).is_pending())).await;
        assert!(waits);
        advance(LEASE).await;
        assert_eq!((kept.await, begun.load(Ordering::Relaxed)), (None, 0));
    }

    #[tokio::test(start_paused = true)]
    async fn a_lease_that_is_not_extended_ends_its_work() {
        let lost = || async { Err(StoreError::LeaseLost { what: "jobs".to_owned() }) };
        assert_eq!(keep_alive(&clock(), Duration::ZERO, LEASE, lost, sleep(LEASE * 2)).await, None);
    }
}
