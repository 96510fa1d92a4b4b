use std::{num::NonZeroU32, time::Duration};

use chrono::{DateTime, TimeDelta};
use domain::{Phase, Run, Secrets, Status, Transition};
use sqlx::PgPool;
use testkit::command_job;

use super::*;
use crate::{
    DueJobs as _, Inserted, JobVersion, Lane, LeaseTerms, NewJob, PollTurns as _, Sealer, StepRecords as _,
    Viewer,
};

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
    let mut job = command_job(1);
    job.spec.timeout_minutes = NonZeroU32::new(30);
    job.spec.progress = serde_json::from_str(r#"{"path": "progress", "total": 200}"#).unwrap();
    let model =
        r#"{"name": "model", "text": "serve", "first_node": 0, "nodes": 1, "service": {"max_restarts": 1}}"#;
    job.spec.work = serde_json::from_str(&format!(r#"{{"kind": "components", "list": [{model}]}}"#)).unwrap();
    let new = NewJob { job, secrets: Secrets::default(), request_hash: [0; 32] };
    let Inserted::Created(mut job) = Box::pin(store.insert_job(&new)).await.unwrap() else {
        panic!("not created")
    };
    let terms = LeaseTerms { duration: LEASE, limit: 1, only_stopped: false };
    let lease = store.acquire_due(&dgx(), Lane::Submit, Uuid::from_u128(9), terms).await.unwrap();
    let mut attempt = job.new_attempt("/lustre/tao".parse().unwrap(), T0).unwrap();
    attempt.slurm_id = slurm::SlurmJobId::new(7);
    attempt.submitted_at = Some(T0);
    job.attempt = Some(attempt);
    job.phase = Phase::InQueue;
    let id = job.id;
    Box::pin(store.record_steps(&lease, &[Transition { job, due_at: None }], T0)).await.unwrap();
    Box::pin(store.find_job(id, &Viewer::All)).await.unwrap().unwrap()
}

fn running(job: &Job) -> ObservedChange {
    let job = Job { status: Status::Running, phase: Phase::Running, ..job.clone() };
    ObservedChange { job, step_due: false }
}

async fn find(store: &Store, job: &Job) -> Job {
    store.find_job(job.id, &Viewer::All).await.unwrap().unwrap()
}

#[sqlx::test(migrator = "crate::MIGRATOR")]
async fn active_jobs_are_read_as_they_are_stored(pool: PgPool) {
    let store = store(pool);
    let waiting = active_job(&store).await;
    assert_eq!(store.active_jobs(&dgx()).await.unwrap(), [ActiveJob::of(&waiting).unwrap()]);
    assert_eq!(store.active_jobs(&"other".parse().unwrap()).await.unwrap(), []);

    let mut next = running(&waiting);
    next.job.run.activity = serde_json::from_value(serde_json::json!({
        "signs": {"files": 1, "bytes": 2, "newest": 3}, "since": T0, "unreachable_ms": 4
    }))
    .unwrap();
    let lease = acquire(&store, 1).await.unwrap();
    store.record_observations(&lease, &[next], T0).await.unwrap();
    let asked = store.active_jobs(&dgx()).await.unwrap();
    let seen = find(&store, &waiting).await;
    assert_ne!(JobVersion::of(&seen), JobVersion::of(&waiting), "what was seen is another content");
    assert_eq!(asked, [ActiveJob::of(&seen).unwrap()]);
    assert_eq!((asked[0].timeout_minutes, asked[0].was_alive), (NonZeroU32::new(30), true));
    assert!(asked[0].reporting.services && asked[0].reporting.progress.as_deref() == Some("progress"));
}

#[sqlx::test(migrator = "crate::MIGRATOR")]
async fn an_unreadable_row_is_left_out_alone(pool: PgPool) {
    let store = store(pool);
    active_job(&store).await;
    let broken = r#"update jobs set phase = 'running', spec = spec || '{"timeout_minutes": "soon"}'"#;
    sqlx::raw_sql(broken).execute(&store.pool).await.unwrap();
    assert_eq!(store.active_jobs(&dgx()).await.unwrap(), []);
}

#[sqlx::test(migrator = "crate::MIGRATOR")]
async fn an_answer_is_compared_with_the_version_that_was_asked_about(pool: PgPool) {
    let store = store(pool);
    let job = active_job(&store).await;
    let asked = store.active_jobs(&dgx()).await.unwrap();
    let ids = async |asked: &[ActiveJob]| {
        store
            .unchanged_jobs(&asked.iter().collect::<Vec<_>>())
            .await
            .unwrap()
            .iter()
            .map(|job| job.id)
            .collect::<Vec<_>>()
    };
    assert_eq!(ids(&asked).await, [job.id]);
    store.request_cancel(job.id, &Viewer::All, T0).await.unwrap();
    assert_eq!(ids(&asked).await, [], "it is another by now");
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
    let refused = store.record_observations(&slept, &changed, T0).await;
    assert!(matches!(refused, Err(StoreError::LeaseLost { .. })));
    assert_eq!(store.find_job(job.id, &Viewer::All).await.unwrap().unwrap().status, Status::Pending);
}

#[sqlx::test(migrator = "crate::MIGRATOR")]
async fn a_poll_skips_a_job_that_changed_meanwhile(pool: PgPool) {
    let store = store(pool);
    let job = active_job(&store).await;
    let lease = acquire(&store, 1).await.unwrap();
    store.request_cancel(job.id, &Viewer::All, T0).await.unwrap();
    let changed = [running(&job)];
    let written = store.record_observations(&lease, &changed, T0).await.unwrap();
    assert_eq!(written, 0);
    assert_eq!(store.find_job(job.id, &Viewer::All).await.unwrap().unwrap().status, Status::Canceling);
}

#[sqlx::test(migrator = "crate::MIGRATOR")]
async fn a_refused_observation_does_not_hold_up_others(pool: PgPool) {
    let store = store(pool);
    let job = active_job(&store).await;
    let lease = acquire(&store, 1).await.unwrap();
    let mut refused = running(&job);
    refused.job.message = "a NUL \0 in it".to_owned();
    let changed = [refused, running(&job)];
    let written = store.record_observations(&lease, &changed, T0).await.unwrap();
    assert_eq!(written, 1);
    assert_eq!(store.find_job(job.id, &Viewer::All).await.unwrap().unwrap().status, Status::Running);
}

#[sqlx::test(migrator = "crate::MIGRATOR")]
async fn a_kill_reason_is_stored(pool: PgPool) {
    let store = store(pool);
    let job = active_job(&store).await;
    let mut next = running(&job);
    next.job.run.kill_reason = Some("No activity.".to_owned());
    next.job.run.activity = serde_json::from_value(serde_json::json!({
        "signs": {"files": 1, "bytes": u64::MAX, "newest": 3}, "since": T0, "unreachable_ms": 4
    }))
    .unwrap();
    let lease = acquire(&store, 1).await.unwrap();
    let changed = [next.clone()];
    store.record_observations(&lease, &changed, T0).await.unwrap();
    let found = store.find_job(job.id, &Viewer::All).await.unwrap().unwrap();
    assert_eq!(
        (found.run.kill_reason, found.run.activity),
        (next.job.run.kill_reason, next.job.run.activity)
    );
}

#[sqlx::test(migrator = "crate::MIGRATOR")]
async fn the_details_of_a_wait_are_stored(pool: PgPool) {
    let store = store(pool);
    let job = active_job(&store).await;
    let mut next = running(&job);
    (next.job.run.queued_since, next.job.run.estimated_start) = (Some(T0), Some(T0 + TimeDelta::hours(1)));
    let lease = acquire(&store, 1).await.unwrap();
    let changed = [next.clone()];
    store.record_observations(&lease, &changed, T0).await.unwrap();
    let found = store.find_job(job.id, &Viewer::All).await.unwrap().unwrap().run;
    let told = next.job.run;
    assert_eq!((found.queued_since, found.estimated_start), (told.queued_since, told.estimated_start));
}

/// The job with its run on this node.
fn on_node(job: &Job, node: &str) -> Job {
    let run = Run { nodes: Some(node.to_owned()), ..job.run.clone() };
    Job { run, status: Status::Running, phase: Phase::Running, ..job.clone() }
}

#[sqlx::test(migrator = "crate::MIGRATOR")]
async fn polls_write_a_run_until_its_end_and_the_concluding_step_after_it(pool: PgPool) {
    let store = store(pool);
    let poll = acquire(&store, 1).await.unwrap();
    let observe = async |job: Job| {
        store.record_observations(&poll, &[ObservedChange { job, step_due: true }], T0).await.unwrap()
    };
    let step = async |token: u128, change: &dyn Fn(&Job) -> Job| {
        let terms = LeaseTerms { duration: LEASE, limit: 1, only_stopped: false };
        let lease = store.acquire_due(&dgx(), Lane::Follow, Uuid::from_u128(token), terms).await.unwrap();
        let steps = [Transition { job: change(&lease.jobs[0]), due_at: Some(T0) }];
        assert_eq!(store.record_steps(&lease, &steps, T0).await.unwrap().len(), 1);
    };
    let job = active_job(&store).await;
    let node = async || find(&store, &job).await.run.nodes.unwrap();

    observe(on_node(&job, "polled")).await;
    step(10, &|job| on_node(job, "stale")).await;
    assert_eq!(node().await, "polled", "the run is not over");

    let mut ended = on_node(&find(&store, &job).await, "last");
    (ended.phase, ended.run.is_over) = (Phase::Finishing, true);
    observe(ended).await;
    assert_eq!(node().await, "last");
    step(11, &|job| Job { phase: Phase::Finishing, ..on_node(job, "concluded") }).await;
    assert_eq!(node().await, "concluded");

    // Polls leave a run that is over alone, even if its job is back in the queue.
    step(12, &|job| Job { phase: Phase::InQueue, ..job.clone() }).await;
    observe(on_node(&find(&store, &job).await, "late")).await;
    assert_eq!(node().await, "concluded");
}
