//! What a job can write without end costs the cluster a bounded number of commands.

use domain::{ArrayTasks, JobArray};
use remote::{STATUS_BACKLOG, STATUS_BYTES};

use super::*;

/// The backlogs that conclusions have asked for: the whole file first, and its end after five minutes.
fn assert_shrinks(backlogs: &[u64]) {
    let ends = backlogs.first().zip(backlogs.last());
    assert_eq!(ends, Some((&STATUS_BACKLOG, &(STATUS_BYTES as u64))), "{backlogs:?}");
}

impl Bench {
    /// The only job ends while its status file still grows, and is `Done` after a bounded number of commands.
    async fn ends_writing_without_end(&self, id: JobId, name: &str) {
        self.fake.write_without_end(name);
        self.fake.set_state(name, &SlurmState::Completed, Some(0));
        self.poll().await;
        let commands = self.concluded().await;
        assert!(commands <= 80, "{commands} commands");
        assert_eq!(self.status(id).await, (Status::Done, Phase::Ended));
    }

    /// Concludes the only job until it has ended, and returns the number of commands.
    async fn concluded(&self) -> usize {
        let before = self.fake.commands();
        loop {
            let began = self.database_time("select now()").await.unwrap();
            assert_eq!(self.step(Lane::Follow).await, 1);
            assert_eq!(self.step(Lane::Follow).await, 0, "no step is repeated without a pause");
            let commands = self.fake.commands() - before;
            let Some(due_at) = self.database_time("select due_at from jobs").await else { return commands };
            assert!(commands < 250, "no end after {commands} commands");
            self.clock.advance(due_at - began);
            self.make_due().await;
        }
    }

    async fn database_time(&self, query: &'static str) -> Option<domain::Timestamp> {
        sqlx::query_scalar(query).fetch_one(&self.pool).await.unwrap()
    }
}

#[sqlx::test(migrator = "persistence::MIGRATOR")]
async fn a_status_file_without_end_is_read_with_pauses_and_not_for_ever(pool: PgPool) {
    let bench = Bench::new(pool);
    let (id, name) = bench.submitted().await;
    bench.ends_writing_without_end(id, &name).await;
    assert_shrinks(&bench.fake.backlogs(&name));
}

#[sqlx::test(migrator = "persistence::MIGRATOR")]
async fn the_status_file_of_a_task_without_end_is_read_like_that_of_a_job(pool: PgPool) {
    let bench = Bench::new(pool);
    let Job { id, owner, cluster, mut spec, .. } = command_job(1);
    let tasks = ArrayTasks::Indices("0-1".parse().unwrap());
    spec.array = Some(JobArray { tasks, max_parallel: None });
    let id = bench.accept(Job::accepted(id, owner, cluster, spec, bench.clock.now())).await;
    bench.step(Lane::Submit).await;
    let name = format!("tao-job-{id}");
    bench.ends_writing_without_end(id, &name).await;
    for task in 0..2 {
        assert_shrinks(&bench.fake.backlogs(&format!("{name}_{task}")));
    }
}

#[sqlx::test(migrator = "persistence::MIGRATOR")]
async fn a_file_with_a_secret_that_stays_is_removed_again_with_growing_pauses(pool: PgPool) {
    let bench = Bench::new(pool);
    let (id, name) = bench.submitted().await;
    bench.fake.hold_on_to(&format!("/lustre/users/tao/env/{id}.sh"));
    bench.fake.set_state(&name, &SlurmState::Completed, Some(0));
    bench.poll().await;
    let began = bench.clock.now();
    bench.concluded().await;
    assert_eq!(bench.status(id).await.1, Phase::Ended);
    assert!(bench.clock.now() - began >= TimeDelta::hours(24), "it is tried for a day");
}
