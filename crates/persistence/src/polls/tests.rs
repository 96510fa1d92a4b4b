use chrono::DateTime;
use domain::{Next, Phase, Secrets, Status};
use sqlx::PgPool;
use testkit::command_job;

use super::*;
use crate::{Inserted, Lane, LeaseTerms, NewJob, Sealer, StepRecord, Viewer};

const LEASE: Duration = Duration::from_mins(1);
const T0: Timestamp = DateTime::UNIX_EPOCH;

fn store(pool: PgPool) -> Store {
    Store::from_pool(pool, Sealer::from_key([7; 32]))
}

fn dgx() -> ClusterName {
    "dgx".parse().unwrap()
}

async fn acquire(store: &Store, token: u128) -> Option<PollLease> {
    store.acquire_poll(&dgx(), Uuid::from_u128(token), LEASE).await.unwrap()
}

/// A job that Slurm has.
async fn active_job(store: &Store) -> Job {
    let new = NewJob { job: command_job(1), secrets: Secrets::default(), request_hash: [0; 32] };
    let Inserted::Created(mut job) = store.insert_job(&new).await.unwrap() else { panic!("not created") };
    let terms = LeaseTerms { duration: LEASE, limit: 1 };
    let lease = store.acquire_due(&dgx(), Lane::Submit, Uuid::from_u128(9), terms).await.unwrap();
    let mut attempt = job.new_attempt("/lustre/tao".parse().unwrap(), T0).unwrap();
    attempt.slurm_id = slurm::SlurmJobId::new(7);
    attempt.submitted_at = Some(T0);
    job.attempt = Some(attempt);
    job.phase = Phase::InQueue;
    let id = job.id;
    store.record_steps(&lease, &[StepRecord { job, due_at: None }], T0).await.unwrap();
    store.find_job(id, &Viewer::All).await.unwrap().unwrap()
}

fn running(job: &Job) -> Next {
    let job = Job { status: Status::Running, phase: Phase::Running, ..job.clone() };
    Next { job, step_due: false }
}

#[sqlx::test(migrator = "crate::MIGRATOR")]
async fn only_one_worker_polls_a_cluster(pool: PgPool) {
    let store = store(pool);
    let (one, other) = tokio::join!(acquire(&store, 1), acquire(&store, 2));
    assert!(one.is_some() ^ other.is_some());
}

#[sqlx::test(migrator = "crate::MIGRATOR")]
async fn the_next_poll_is_due_after_the_interval(pool: PgPool) {
    let store = store(pool);
    let lease = acquire(&store, 1).await.unwrap();
    store.record_poll(&lease, PollResult::Answered { changed: &[] }, LEASE, T0).await.unwrap();
    assert!(acquire(&store, 2).await.is_none());
    let pulse = store.pulses().await.unwrap()[&dgx()];
    assert_eq!((pulse.polled_at, pulse.interval), (Some(T0), LEASE));
    store.poll_soon(&dgx(), Duration::ZERO).await.unwrap();
    assert!(acquire(&store, 3).await.is_some());
}

#[sqlx::test(migrator = "crate::MIGRATOR")]
async fn a_poll_without_its_lease_changes_nothing(pool: PgPool) {
    let store = store(pool);
    let job = active_job(&store).await;
    let slept = acquire(&store, 1).await.unwrap();
    sqlx::query!("update cluster_polls set lease_expires_at = now() - interval '1 second'")
        .execute(&store.pool)
        .await
        .unwrap();
    let changed = [running(&job)];
    let refused = store.record_poll(&slept, PollResult::Answered { changed: &changed }, LEASE, T0).await;
    assert!(matches!(refused, Err(StoreError::LeaseLost { .. })));
    assert_eq!(store.find_job(job.id, &Viewer::All).await.unwrap().unwrap().status, Status::Pending);
}

#[sqlx::test(migrator = "crate::MIGRATOR")]
async fn a_poll_leaves_alone_what_somebody_changed_meanwhile(pool: PgPool) {
    let store = store(pool);
    let job = active_job(&store).await;
    let lease = acquire(&store, 1).await.unwrap();
    store.request_cancel(job.id, &Viewer::All, T0).await.unwrap();
    let changed = [running(&job)];
    let written =
        store.record_poll(&lease, PollResult::Answered { changed: &changed }, LEASE, T0).await.unwrap();
    assert_eq!(written, 0);
    assert_eq!(store.find_job(job.id, &Viewer::All).await.unwrap().unwrap().status, Status::Canceling);
}

#[sqlx::test(migrator = "crate::MIGRATOR")]
async fn an_unanswered_poll_keeps_the_pulse_of_the_last_answer(pool: PgPool) {
    let store = store(pool);
    let lease = acquire(&store, 1).await.unwrap();
    store.record_poll(&lease, PollResult::Answered { changed: &[] }, Duration::ZERO, T0).await.unwrap();
    let lease = acquire(&store, 2).await.unwrap();
    let later = T0 + chrono::TimeDelta::hours(1);
    store
        .record_poll(&lease, PollResult::Unanswered { error: "no route", auth_required: false }, LEASE, later)
        .await
        .unwrap();
    assert_eq!(store.pulses().await.unwrap()[&dgx()].polled_at, Some(T0));
}

#[sqlx::test(migrator = "crate::MIGRATOR")]
async fn a_sight_that_the_database_refuses_holds_up_nobody_else(pool: PgPool) {
    let store = store(pool);
    let job = active_job(&store).await;
    let lease = acquire(&store, 1).await.unwrap();
    let mut refused = running(&job);
    refused.job.message = "a NUL \0 in it".to_owned();
    let changed = [refused, running(&job)];
    let written =
        store.record_poll(&lease, PollResult::Answered { changed: &changed }, LEASE, T0).await.unwrap();
    assert_eq!(written, 1);
    assert_eq!(store.find_job(job.id, &Viewer::All).await.unwrap().unwrap().status, Status::Running);
    assert_eq!(store.pulses().await.unwrap()[&dgx()].polled_at, Some(T0));
}

#[sqlx::test(migrator = "crate::MIGRATOR")]
async fn the_time_in_which_a_cluster_could_not_be_heard_adds_up(pool: PgPool) {
    let store = store(pool);
    let at = |minutes| T0 + TimeDelta::minutes(minutes);
    let poll = async |token, now| {
        let lease = acquire(&store, token).await.unwrap();
        let deaf = lease.deaf_until(now);
        sqlx::raw_sql("update cluster_polls set due_at = now()").execute(&store.pool).await.unwrap();
        store.record_poll(&lease, PollResult::Answered { changed: &[] }, Duration::ZERO, now).await.unwrap();
        deaf.num_minutes()
    };
    assert_eq!(poll(1, at(0)).await, 0);
    assert_eq!(poll(2, T0 + TimeDelta::seconds(20)).await, 0);
    let lease = acquire(&store, 3).await.unwrap();
    store
        .record_poll(
            &lease,
            PollResult::Unanswered { error: "x", auth_required: false },
            Duration::ZERO,
            at(30),
        )
        .await
        .unwrap();
    assert_eq!(poll(4, at(60)).await, 59);
    assert_eq!(poll(5, at(60) + TimeDelta::seconds(20)).await, 59);
    assert_eq!(poll(6, at(90)).await, 89);
}

#[sqlx::test(migrator = "crate::MIGRATOR")]
async fn what_dooms_a_job_survives(pool: PgPool) {
    let store = store(pool);
    let job = active_job(&store).await;
    let mut next = running(&job);
    next.job.kill_reason = Some("No sign of life.".to_owned());
    next.job.activity = serde_json::from_value(serde_json::json!({
        "signs": {"files": 1, "bytes": u64::MAX, "newest": 3}, "since": T0, "deaf_ms": 4
    }))
    .unwrap();
    let lease = acquire(&store, 1).await.unwrap();
    let changed = [next.clone()];
    store.record_poll(&lease, PollResult::Answered { changed: &changed }, LEASE, T0).await.unwrap();
    let found = store.find_job(job.id, &Viewer::All).await.unwrap().unwrap();
    assert_eq!((found.kill_reason, found.activity), (next.job.kill_reason, next.job.activity));
}

#[sqlx::test(migrator = "crate::MIGRATOR")]
async fn what_is_known_of_a_wait_survives(pool: PgPool) {
    let store = store(pool);
    let job = active_job(&store).await;
    let mut next = running(&job);
    let attempt = next.job.attempt.as_mut().unwrap();
    (attempt.queued_since, attempt.estimated_start) = (Some(T0), Some(T0 + TimeDelta::hours(1)));
    let lease = acquire(&store, 1).await.unwrap();
    let changed = [next.clone()];
    store.record_poll(&lease, PollResult::Answered { changed: &changed }, LEASE, T0).await.unwrap();
    let found = store.find_job(job.id, &Viewer::All).await.unwrap().unwrap().attempt.unwrap();
    let told = next.job.attempt.unwrap();
    assert_eq!((found.queued_since, found.estimated_start), (told.queued_since, told.estimated_start));
}
