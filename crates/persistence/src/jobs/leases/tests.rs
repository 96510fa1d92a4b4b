use std::time::Duration;

use chrono::DateTime;
use domain::{DesiredState, Job, JobId, Phase, Secrets, Status, Transition};
use sqlx::PgPool;
use testkit::command_job;
use uuid::Uuid;

use super::*;
use crate::{Inserted, NewJob, Requested, Sealer, StepRecords as _, Viewer};

const TERMS: LeaseTerms = LeaseTerms { duration: Duration::from_secs(30), limit: 100, only_stopped: false };

fn store(pool: PgPool) -> Store {
    Store::from_pool(pool, Sealer::from_key([7; 32]))
}

async fn insert(store: &Store, number: u128) -> Job {
    let mut secrets = Secrets::default();
    secrets.env.insert("HF_TOKEN".parse().unwrap(), "hunter2".to_owned().into());
    let new = NewJob { job: command_job(number), secrets, request_hash: [0; 32] };
    match store.insert_job(&new).await.unwrap() {
        Inserted::Created(job) => job,
        other => panic!("{other:?}"),
    }
}

async fn acquire(store: &Store, token: u128, limit: u32) -> Lease {
    let terms = LeaseTerms { limit, ..TERMS };
    store.acquire_due(&"dgx".parse().unwrap(), Lane::Submit, Uuid::from_u128(token), terms).await.unwrap()
}

/// Lets the lease expire.
async fn let_expire(store: &Store, lease: &Lease) {
    sqlx::query!(
        "update jobs set lease_expires_at = now() - interval '1 second' where lease_token = $1",
        lease.token
    )
    .execute(&store.pool)
    .await
    .unwrap();
}

fn submitting(job: &Job) -> Transition {
    let mut job = job.clone();
    job.attempt = Some(job.new_attempt("/lustre/tao".parse().unwrap(), DateTime::UNIX_EPOCH).unwrap());
    job.phase = Phase::Submitting;
    Transition { job, due_at: None }
}

async fn find(store: &Store, id: JobId) -> Job {
    store.find_job(id, &Viewer::All).await.unwrap().unwrap()
}

#[sqlx::test(migrator = "crate::MIGRATOR")]
async fn two_workers_never_get_the_same_job(pool: PgPool) {
    let store = store(pool);
    for number in 1..=20 {
        insert(&store, number).await;
    }
    let (one, other) = tokio::join!(acquire(&store, 1, 12), acquire(&store, 2, 12));
    let mut ids: Vec<_> = one.jobs.iter().chain(&other.jobs).map(|job| job.id).collect();
    ids.sort();
    ids.dedup();
    assert_eq!((one.jobs.len() + other.jobs.len(), ids.len()), (20, 20));
}

#[sqlx::test(migrator = "crate::MIGRATOR")]
async fn a_leased_job_is_free_again_when_its_lease_expires(pool: PgPool) {
    let store = store(pool);
    insert(&store, 1).await;
    let dead = acquire(&store, 1, 10).await;
    assert_eq!(acquire(&store, 2, 10).await.jobs.len(), 0);
    let_expire(&store, &dead).await;
    assert_eq!(acquire(&store, 3, 10).await.jobs.len(), 1);
}

#[sqlx::test(migrator = "crate::MIGRATOR")]
async fn a_worker_with_an_expired_lease_changes_nothing(pool: PgPool) {
    let store = store(pool);
    let job = insert(&store, 1).await;
    let slept = acquire(&store, 1, 10).await;
    let_expire(&store, &slept).await;

    let stored = store.record_steps(&slept, &[submitting(&job)], DateTime::UNIX_EPOCH).await.unwrap();
    assert!(stored.is_empty(), "expired, though nobody else has it yet");
    let heir = acquire(&store, 2, 10).await;
    let stored = store.record_intents(&slept, &[submitting(&job)], DateTime::UNIX_EPOCH).await.unwrap();
    assert!(stored.is_empty(), "somebody else has it");
    assert!(matches!(store.extend(&slept, TERMS.duration).await, Err(StoreError::LeaseLost { .. })));

    assert_eq!(find(&store, job.id).await.phase, Phase::Queued);
    let stored = store.record_steps(&heir, &[submitting(&job)], DateTime::UNIX_EPOCH).await.unwrap();
    assert_eq!(stored.len(), 1, "the heir's right is untouched");
}

#[sqlx::test(migrator = "crate::MIGRATOR")]
async fn a_step_and_its_attempt_are_stored_together_and_read_back(pool: PgPool) {
    let store = store(pool);
    let job = insert(&store, 1).await;
    let lease = acquire(&store, 1, 10).await;
    let mut step = submitting(&job);
    if let Some(attempt) = &mut step.job.attempt {
        attempt.slurm_id = slurm::SlurmJobId::new(u32::MAX);
        attempt.submitted_at = Some(DateTime::UNIX_EPOCH);
        step.job.run.exit = Some(slurm::ExitCode { code: 3, signal: 9 });
        let file = serde_json::json!({
            "path": "/lustre/r/status.json", "inode": u64::MAX, "offset": 5, "written_at": i64::MAX, "seal": u64::MAX,
            "skipping": false, "rewritten": true, "failure": null,
        });
        step.job.run.status = serde_json::from_value(serde_json::json!({ "files": [file] })).unwrap();
    }
    store.record_steps(&lease, &[step], DateTime::UNIX_EPOCH).await.unwrap();
    let found = find(&store, job.id).await;
    assert_eq!(found.version, 2);
    let attempt = found.attempt.unwrap();
    assert_eq!(attempt.slurm_id.unwrap().get(), u32::MAX);
    assert_eq!(found.run.exit, Some(slurm::ExitCode { code: 3, signal: 9 }));
    assert_eq!(found.run.status.cursors()[0].inode, u64::MAX);
}

#[sqlx::test(migrator = "crate::MIGRATOR")]
async fn an_attempt_without_a_script_of_its_own_has_that_of_the_one_before(pool: PgPool) {
    let store = store(pool);
    let mut job = insert(&store, 1).await;
    for token in 1..=3 {
        let lease = acquire(&store, token, 10).await;
        job = submitting(&lease.jobs[0]).job;
        let step = Transition { job: job.clone(), due_at: Some(DateTime::UNIX_EPOCH) };
        store.record_steps(&lease, &[step], DateTime::UNIX_EPOCH).await.unwrap();
    }
    let own = |no: u32| Some(format!("script {no}"));
    store.record_scripts(&[(job.id, 1, own(1)), (job.id, 2, own(2))]).await.unwrap();
    assert_eq!(store.script(job.id, Some(3)).await.unwrap(), None, "nothing was submitted");
    store.record_scripts(&[(job.id, 3, None)]).await.unwrap();
    assert_eq!(store.script(job.id, Some(3)).await.unwrap(), own(2));
}

#[sqlx::test(migrator = "crate::MIGRATOR")]
async fn a_cancel_request_survives_a_step_that_did_not_see_it(pool: PgPool) {
    let store = store(pool);
    let job = insert(&store, 1).await;
    let lease = acquire(&store, 1, 10).await;
    let leased = lease.jobs[0].clone();
    store.request_cancel(job.id, &Viewer::All, DateTime::UNIX_EPOCH).await.unwrap();
    store.record_steps(&lease, &[submitting(&leased)], DateTime::UNIX_EPOCH).await.unwrap();

    let found = find(&store, job.id).await;
    assert_eq!(
        (found.desired, found.status, found.phase),
        (DesiredState::Cancel, Status::Canceling, Phase::Submitting)
    );
    assert_eq!(acquire(&store, 2, 10).await.jobs.len(), 1, "it is due at once");
}

#[sqlx::test(migrator = "crate::MIGRATOR")]
async fn secrets_open_until_the_job_ends_and_are_gone_then(pool: PgPool) {
    let store = store(pool);
    let job = insert(&store, 1).await;
    assert!(store.open_secrets(&[job.id]).await.unwrap().contains_key(&job.id));

    let lease = acquire(&store, 1, 10).await;
    let ended = job.canceled_locally(DateTime::UNIX_EPOCH);
    store
        .record_steps(&lease, &[Transition { job: ended, due_at: None }], DateTime::UNIX_EPOCH)
        .await
        .unwrap();
    assert!(store.open_secrets(&[job.id]).await.unwrap().is_empty());
    let left = sqlx::query_scalar!("select count(*) from jobs where secrets is not null")
        .fetch_one(&store.pool)
        .await
        .unwrap();
    assert_eq!(left, Some(0));
}

#[sqlx::test(migrator = "crate::MIGRATOR")]
async fn a_released_job_is_due_again_after_the_pause(pool: PgPool) {
    let store = store(pool);
    insert(&store, 1).await;
    let lease = acquire(&store, 1, 10).await;
    store.put_off(&lease, &lease.jobs, Some(Duration::from_mins(1))).await.unwrap();
    assert_eq!(acquire(&store, 2, 10).await.jobs.len(), 0);
    let due = store.next_due_in(&"dgx".parse().unwrap(), Lane::Submit).await.unwrap().unwrap();
    assert!((50..=60).contains(&due.as_secs()), "{due:?}");
}

#[sqlx::test(migrator = "crate::MIGRATOR")]
async fn each_lane_takes_its_own_jobs(pool: PgPool) {
    let store = store(pool);
    let job = insert(&store, 1).await;
    let lease = acquire(&store, 1, 10).await;
    let mut step = submitting(&job);
    step.job.phase = Phase::SubmitUncertain;
    step.due_at = Some(DateTime::UNIX_EPOCH);
    store.record_steps(&lease, &[step], DateTime::UNIX_EPOCH).await.unwrap();

    assert_eq!(acquire(&store, 2, 10).await.jobs.len(), 0);
    let tend =
        store.acquire_due(&"dgx".parse().unwrap(), Lane::Follow, Uuid::from_u128(3), TERMS).await.unwrap();
    assert_eq!(tend.jobs.len(), 1);
}

#[sqlx::test(migrator = "crate::MIGRATOR")]
async fn an_unreadable_row_does_not_hold_up_others(pool: PgPool) {
    let store = store(pool);
    let bad = insert(&store, 1).await;
    let good = insert(&store, 2).await;
    sqlx::query!("update jobs set spec = '{\"work\": 7}' where id = $1", bad.id.get())
        .execute(&store.pool)
        .await
        .unwrap();
    assert_eq!(acquire(&store, 1, 1).await.jobs.len(), 0, "the bad one is first, and is set aside");
    let lease = acquire(&store, 2, 1).await;
    assert_eq!(lease.jobs.iter().map(|job| job.id).collect::<Vec<_>>(), [good.id]);
    let filter = crate::JobFilter { limit: 10, ..crate::JobFilter::default() };
    assert_eq!(store.list_jobs(&Viewer::All, &filter).await.unwrap().jobs.len(), 1);
}

#[sqlx::test(migrator = "crate::MIGRATOR")]
async fn a_refused_result_does_not_hold_up_others(pool: PgPool) {
    let store = store(pool);
    let (bad, good) = (insert(&store, 1).await, insert(&store, 2).await);
    let lease = acquire(&store, 1, 10).await;
    let mut refused = submitting(&bad);
    refused.job.message = "a NUL \0 in it".to_owned();
    let stored =
        store.record_steps(&lease, &[refused, submitting(&good)], DateTime::UNIX_EPOCH).await.unwrap();
    assert_eq!(stored.into_iter().collect::<Vec<_>>(), [good.id]);
}

#[sqlx::test(migrator = "crate::MIGRATOR")]
async fn secrets_sealed_with_another_key_fail_on_their_own(pool: PgPool) {
    let store = store(pool);
    let job = insert(&store, 1).await;
    let other = Store::from_pool(store.pool.clone(), Sealer::from_key([8; 32]));
    let opened = other.open_secrets(&[job.id]).await.unwrap();
    assert!(opened[&job.id].is_err());
}

/// Rolls back the next statements that write a job, as a serialization failure does.
async fn roll_back(pool: &PgPool, event: &str, times: u32) {
    let trap = format!(
        "create sequence {event}s;
         create function lose_{event}() returns trigger language plpgsql as $$ begin
             if nextval('{event}s') <= {times} then raise exception 'deadlock' using errcode = '40P01'; end if;
             return new;
         end $$;
         create trigger lose_{event} before {event} on jobs for each row execute function lose_{event}()"
    );
    sqlx::raw_sql(sqlx::AssertSqlSafe(trap)).execute(pool).await.unwrap();
}

#[sqlx::test(migrator = "crate::MIGRATOR")]
async fn a_rolled_back_statement_is_retried(pool: PgPool) {
    let store = store(pool.clone());
    roll_back(&pool, "insert", 2).await;
    let job = insert(&store, 1).await;
    let lease = acquire(&store, 1, 10).await;
    roll_back(&pool, "update", 2).await;
    let stored = store.record_steps(&lease, &[submitting(&job)], DateTime::UNIX_EPOCH).await.unwrap();
    assert_eq!((stored.len(), find(&store, job.id).await.phase), (1, Phase::Submitting));
}

#[sqlx::test(migrator = "crate::MIGRATOR")]
async fn a_request_is_repeated_after_a_rollback(pool: PgPool) {
    let store = store(pool.clone());
    let job = insert(&store, 1).await;
    roll_back(&pool, "update", 2).await;
    let requested = store.request_cancel(job.id, &Viewer::All, DateTime::UNIX_EPOCH).await.unwrap();
    assert!(matches!(requested, Requested::Taken(_)), "{requested:?}");
}

#[sqlx::test(migrator = "crate::MIGRATOR")]
async fn a_statement_that_is_always_rolled_back_means_an_unavailable_database(pool: PgPool) {
    let store = store(pool.clone());
    let job = insert(&store, 1).await;
    let lease = acquire(&store, 1, 10).await;
    roll_back(&pool, "update", 100).await;
    let failed = store.record_steps(&lease, &[submitting(&job)], DateTime::UNIX_EPOCH).await.unwrap_err();
    assert!(failed.is_unavailable(), "{failed:?}");
}
