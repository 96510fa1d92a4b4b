use chrono::DateTime;
use domain::{Phase, Secrets, Timestamp, Transition};
use slurm::{Allocation, SlurmState};
use sqlx::{AssertSqlSafe, PgPool, SqlSafeStr};
use testkit::command_job;
use uuid::Uuid;

use super::*;
use crate::{DueJobs as _, Inserted, Lane, LeaseTerms, NewJob, Sealer, StepRecords as _};

const T0: Timestamp = DateTime::UNIX_EPOCH;
const SOON: Duration = Duration::from_mins(5);
const LATER: Duration = Duration::from_hours(1);

fn dgx() -> ClusterName {
    "dgx".parse().unwrap()
}

/// A store with a job that Slurm has under id 7.
async fn with_a_job(pool: &PgPool) -> Store {
    let store = Store::from_pool(pool.clone(), Sealer::from_key([7; 32]));
    let new = NewJob { job: command_job(1), secrets: Secrets::default(), request_hash: [0; 32] };
    let Inserted::Created(mut job) = store.insert_job(&new).await.unwrap() else { panic!("not created") };
    let terms = LeaseTerms { duration: LATER, limit: 1, only_stopped: false };
    let lease = store.acquire_due(&dgx(), Lane::Submit, Uuid::from_u128(9), terms).await.unwrap();
    let mut attempt = job.new_attempt("/lustre/tao".parse().unwrap(), T0).unwrap();
    attempt.slurm_id = SlurmJobId::new(7);
    attempt.submitted_at = Some(T0);
    job.attempt = Some(attempt);
    job.phase = Phase::InQueue;
    store.record_steps(&lease, &[Transition { job, due_at: None }], T0).await.unwrap();
    store
}

async fn run(pool: &PgPool, statement: impl SqlSafeStr) {
    sqlx::raw_sql(statement).execute(pool).await.unwrap();
}

async fn due(store: &Store) -> Vec<(SlurmJobId, AttemptKey)> {
    store.take_unaccounted(&dgx(), 10, LATER).await.unwrap()
}

/// Each stored allocation: id, seconds, GPUs.
#[expect(clippy::disallowed_methods, reason = "a statement of tests")]
async fn stored(pool: &PgPool) -> Vec<(i64, i64, i32)> {
    let rows = "select slurm_job_id, elapsed, gpus from allocations where owner = 'ann' order by started_at";
    sqlx::query_as(rows).fetch_all(pool).await.unwrap()
}

fn allocation(key: &AttemptKey, state: SlurmState, start: i64, elapsed: u64) -> Allocation {
    Allocation {
        id: SlurmJobId::new(7).unwrap(),
        state,
        start: Some(start),
        elapsed,
        partition: "gpu".to_owned(),
        gpus: 2,
        cpus: 4,
        nodes: 1,
        cpu_seconds: Some(30),
        most_memory: None,
        name: key.name.to_string(),
    }
}

const CONCLUDED: &str = "update slurm_metadata set concluded_at = now(), outcome = 'done'";
const SOON_AGAIN: &str = "update unaccounted set ask_at = now()";

#[sqlx::test(migrator = "crate::MIGRATOR")]
async fn a_slurm_job_is_asked_about_when_its_attempt_is_concluded_until_all_is_known_twice(pool: PgPool) {
    let store = with_a_job(&pool).await;
    run(&pool, "update unaccounted set owner = 'ann'").await;
    assert_eq!(due(&store).await, [], "it may still run");
    run(&pool, CONCLUDED).await;
    let jobs = due(&store).await;
    let [(id, key)] = &jobs[..] else { panic!("{jobs:?}") };
    assert_eq!((id.get(), due(&store).await), (7, vec![]), "it is taken");

    // The end of its second run is not known yet.
    let first = allocation(key, SlurmState::NodeFail, 1_700_000_000, 30);
    let running = allocation(key, SlurmState::Running, 1_700_000_100, 5);
    let told = Accounted { runs: vec![first.clone(), running], cut: false };
    store.record_allocations(&dgx(), &jobs, &[told], SOON, LATER).await.unwrap();
    assert_eq!(stored(&pool).await, [(7, 30, 2)]);

    // With all: soon once more, and once more an hour after the first question.
    let second = allocation(key, SlurmState::Completed, 1_700_000_100, 61);
    let told = Accounted { runs: vec![first, second], cut: false };
    for (since, again) in [("1 minute", Some(5)), ("6 minutes", Some(54)), ("61 minutes", None)] {
        run(&pool, AssertSqlSafe(format!("{SOON_AGAIN}, asked_since = now() - interval '{since}'"))).await;
        assert_eq!(due(&store).await.len(), 1);
        store.record_allocations(&dgx(), &jobs, std::slice::from_ref(&told), SOON, LATER).await.unwrap();
        assert_eq!(stored(&pool).await, [(7, 30, 2), (7, 61, 2)]);
        let wait = "select round(extract(epoch from ask_at - now()) / 60)::int from unaccounted";
        assert_eq!(sqlx::query_scalar(wait).fetch_optional(&pool).await.unwrap(), again, "{since}");
    }
}

#[sqlx::test(migrator = "crate::MIGRATOR")]
async fn what_a_deleted_job_held_is_still_asked_for(pool: PgPool) {
    let store = with_a_job(&pool).await;
    run(&pool, "delete from jobs").await;
    let jobs = due(&store).await;
    let told =
        Accounted { runs: vec![allocation(&jobs[0].1, SlurmState::Failed, 1_700_000_000, 9)], cut: false };
    run(&pool, "update unaccounted set owner = 'ann'").await;
    store.record_allocations(&dgx(), &jobs, &[told], SOON, LATER).await.unwrap();
    assert_eq!(stored(&pool).await, [(7, 9, 2)]);
}

#[sqlx::test(migrator = "crate::MIGRATOR")]
async fn a_job_that_accounting_does_not_know_is_given_up_after_a_week(pool: PgPool) {
    let store = with_a_job(&pool).await;
    run(&pool, CONCLUDED).await;
    let jobs = due(&store).await;
    let nothing = [Accounted::default()];
    store.record_allocations(&dgx(), &jobs, &nothing, SOON, LATER).await.unwrap();
    run(&pool, SOON_AGAIN).await;
    assert_eq!(due(&store).await, jobs);
    run(&pool, "update unaccounted set asked_since = now() - interval '8 days'").await;
    store.record_allocations(&dgx(), &jobs, &nothing, SOON, LATER).await.unwrap();
    run(&pool, SOON_AGAIN).await;
    assert_eq!(due(&store).await, []);
}

/// A lost reply and a slow controller: the attempt goes on with the first of its two Slurm jobs.
#[sqlx::test(migrator = "crate::MIGRATOR")]
async fn both_slurm_jobs_of_an_attempt_are_asked_about(pool: PgPool) {
    let store = with_a_job(&pool).await;
    run(&pool, "update slurm_metadata set slurm_job_id = 8").await;
    run(&pool, "update slurm_metadata set slurm_job_id = 8").await;
    run(&pool, CONCLUDED).await;
    run(&pool, "update unaccounted set owner = 'ann'").await;
    let mut jobs = due(&store).await;
    jobs.sort_by_key(|(id, _)| *id);
    assert_eq!(jobs.iter().map(|(id, _)| id.get()).collect::<Vec<_>>(), [7, 8]);
    let first = allocation(&jobs[0].1, SlurmState::Failed, 1_700_000_000, 1);
    let second = Allocation { id: jobs[1].0, elapsed: 61, start: Some(1_700_000_100), ..first.clone() };
    let told = Accounted { runs: vec![first, second], cut: false };
    for left in [2, 0] {
        store.record_allocations(&dgx(), &jobs, &[told.clone(), told.clone()], SOON, LATER).await.unwrap();
        assert_eq!(stored(&pool).await, [(7, 1, 2), (8, 61, 2)]);
        let asked: i64 =
            sqlx::query_scalar("select count(*) from unaccounted").fetch_one(&pool).await.unwrap();
        assert_eq!(asked, left);
        run(&pool, "update unaccounted set asked_since = now() - interval '1 hour'").await;
    }
}

#[sqlx::test(migrator = "crate::MIGRATOR")]
async fn allocations_stay_as_long_as_figures_may_ask_for_them(pool: PgPool) {
    let store = with_a_job(&pool).await;
    run(
        &pool,
        "insert into allocations (cluster, slurm_job_id, started_at, elapsed, job_id, attempt, owner, labels, partition, state, gpus, cpus, nodes)
         select 'dgx', days, now() - days * interval '1 day', 86400, gen_random_uuid(), 1, 'ann', '{}', 'polar', 'COMPLETED', 1, 1, 1
         from unnest(array[1, 401, 403]) days",
    )
    .await;
    assert_eq!(store.delete_old_allocations().await.unwrap(), 1);
    assert_eq!(stored(&pool).await.iter().map(|(id, ..)| *id).collect::<Vec<_>>(), [401, 1]);
}
