//! Jobs of which a poll has no news are not read. What is read is set right by the poll that reads it.

use super::*;

impl Bench {
    /// A job that waits, of which a poll has seen that there is nothing new.
    async fn waiting_quietly(&self) -> (JobId, String) {
        let (id, name) = self.submitted().await;
        self.fake.wait_for(&name, "Priority");
        self.poll().await;
        self.poll().await;
        (id, name)
    }

    /// Something is untrue about each job that no poll has heard of.
    async fn spoil(&self) {
        sqlx::raw_sql("update jobs set pending_reason = 'Untrue'").execute(&self.pool).await.unwrap();
    }

    /// Whether a poll reads the job.
    async fn reads(&self, id: JobId) -> bool {
        self.spoil().await;
        self.poll().await;
        self.job(id).await.pending_reason.unwrap() != "Untrue"
    }
}

#[sqlx::test(migrator = "persistence::MIGRATOR")]
async fn a_job_of_which_there_is_no_news_is_not_read_again_until_there_is(pool: PgPool) {
    let bench = Bench::new(pool);
    let (id, name) = bench.waiting_quietly().await;
    assert!(!bench.reads(id).await);
    bench.fake.wait_for(&name, "Resources");
    assert!(bench.reads(id).await, "Slurm says something else");
    bench.poll().await;
    assert!(!bench.reads(id).await);
    bench.worker.store.request_cancel(id, &Viewer::All, bench.clock.now()).await.unwrap();
    bench.spoil().await;
    bench.poll().await;
    assert_eq!(bench.job(id).await.pending_reason.unwrap(), "Resources", "the job is another");
}

#[sqlx::test(migrator = "persistence::MIGRATOR")]
async fn what_is_believed_to_be_no_news_is_looked_at_now_and_then(pool: PgPool) {
    let bench = Bench::new(pool);
    let (id, _) = bench.waiting_quietly().await;
    bench.clock.advance(TimeDelta::minutes(9));
    assert!(!bench.reads(id).await);
    bench.clock.advance(TimeDelta::minutes(11));
    assert!(bench.reads(id).await);
}

#[sqlx::test(migrator = "persistence::MIGRATOR")]
async fn a_job_that_slurm_has_lost_is_missed_however_quiet_it_was(pool: PgPool) {
    let bench = Bench::new(pool);
    let (id, name) = bench.waiting_quietly().await;
    bench.fake.lose(&name);
    bench.poll().await;
    assert!(bench.job(id).await.run.missing_since.is_some());
}
