//! What jobs held: asked for when they have ended, and less and less often if accounting does not answer.

use super::*;

/// A Slurm job of a job that is deleted, which is asked about since an hour.
const UNACCOUNTED: &str = "
    insert into unaccounted (cluster, slurm_job_id, token, job_id, attempt, owner, labels, asked_since)
    values ($1, 7, 'tao-job-00000000-0000-0000-0000-000000000001', '00000000-0000-0000-0000-000000000001', 1, 'ann', '{}',
            now() - interval '1 hour')";

#[sqlx::test(migrator = "persistence::MIGRATOR")]
#[expect(clippy::disallowed_methods, reason = "statements of tests")]
async fn accounting_that_does_not_answer_is_asked_again_after_a_time_that_grows(pool: PgPool) {
    let bench = Bench::new(pool.clone());
    sqlx::query(UNACCOUNTED).bind(cluster().name.as_str()).execute(&pool).await.unwrap();
    bench.fake.plan_fault(Fault::Unreachable);
    assert_eq!(bench.worker.account(&bench.runtime).await.unwrap(), 0);
    let waits = "select ask_at - now() > interval '50 minutes' from unaccounted";
    assert!(sqlx::query_scalar::<_, bool>(waits).fetch_one(&pool).await.unwrap());
    // Nothing is due any more.
    assert_eq!(bench.worker.account(&bench.runtime).await.unwrap(), 0);
    assert_eq!(bench.fake.commands(), 1);
}
