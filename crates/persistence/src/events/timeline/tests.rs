use chrono::DateTime;
use domain::{Job, Phase, Secrets, Transition};
use sqlx::PgPool;
use testkit::command_job;
use uuid::Uuid;

use super::*;
use crate::{DueJobs as _, Inserted, Lane, LeaseTerms, NewJob, Sealer, StepRecords as _};

const LEASE: Duration = Duration::from_mins(1);

fn store(pool: PgPool) -> Store {
    Store::from_pool(pool, Sealer::from_key([7; 32]))
}

fn dgx() -> ClusterName {
    "dgx".parse().unwrap()
}

/// Whole seconds, which the database keeps as they are.
fn at(seconds: i64) -> Timestamp {
    DateTime::from_timestamp(1_800_000_000 + seconds, 0).unwrap()
}

async fn job(store: &Store, number: u128) -> Job {
    let new = NewJob { job: command_job(number), secrets: Secrets::default(), request_hash: [0; 32] };
    let Inserted::Created(job) = store.insert_job(&new).await.unwrap() else { panic!("not created") };
    job
}

/// Slurm has it since `seconds`.
async fn submitted(store: &Store, seconds: i64) -> JobId {
    let mut job = job(store, 1).await;
    let terms = LeaseTerms { duration: LEASE, limit: 1, only_stopped: false };
    let lease = store.acquire_due(&dgx(), Lane::Submit, Uuid::from_u128(9), terms).await.unwrap();
    let mut attempt = job.new_attempt("/lustre/tao".parse().unwrap(), at(seconds)).unwrap();
    attempt.slurm_id = slurm::SlurmJobId::new(7);
    attempt.submitted_at = Some(at(seconds));
    (job.attempt, job.phase) = (Some(attempt), Phase::InQueue);
    let id = job.id;
    store.record_steps(&lease, &[Transition { job, due_at: None }], at(seconds)).await.unwrap();
    id
}

fn run(class: &'static str, seconds: i64, subject: Subject) -> CommandRun {
    CommandRun {
        cluster: dgx(),
        class,
        host: Some("login1:22".to_owned()),
        started_at: at(seconds),
        duration: Duration::from_millis(12),
        result: CommandResult::Ok,
        exit_code: Some(0),
        bytes: Some(345),
        jobs: 3,
        subjects: vec![(subject, Some("as expected".to_owned()))],
    }
}

fn of(id: JobId) -> Subject {
    Subject::Attempt { job: id.get(), no: 1 }
}

async fn read(store: &Store, id: JobId) -> Vec<(String, Timestamp)> {
    let entries = store.timeline(id, &[], None, 10_000).await.unwrap();
    entries.into_iter().map(|entry| (entry.class, entry.started_at)).collect()
}

#[sqlx::test(migrator = "crate::MIGRATOR")]
async fn commands_are_read_as_they_were_stored_in_the_order_of_their_starts(pool: PgPool) {
    let store = store(pool);
    let id = job(&store, 1).await.id;
    let lost = CommandRun {
        host: None,
        result: CommandResult::Lost,
        exit_code: None,
        bytes: None,
        ..run("submit", 5, of(id))
    };
    store.record_commands(&[run("conclude", 9, of(id)), lost]).await.unwrap();
    let entries = store.timeline(id, &[], None, 10).await.unwrap();
    let [submit, conclude] = entries.as_slice() else { panic!("{entries:?}") };
    assert_eq!((submit.class.as_str(), submit.result, submit.bytes), ("submit", CommandResult::Lost, None));
    let expected = TimelineEntry {
        id: conclude.id,
        class: "conclude".to_owned(),
        attempt: Some(1),
        host: Some("login1:22".to_owned()),
        started_at: at(9),
        duration: Duration::from_millis(12),
        result: CommandResult::Ok,
        exit_code: Some(0),
        bytes: Some(345),
        jobs: 3,
        outcome: Some("as expected".to_owned()),
    };
    assert_eq!(*conclude, expected);

    let after = Some((submit.started_at, submit.id));
    assert_eq!(store.timeline(id, &[], after, 10).await.unwrap(), [expected]);
    assert_eq!(store.timeline(id, &["submit".to_owned()], after, 10).await.unwrap(), []);
}

#[sqlx::test(migrator = "crate::MIGRATOR")]
async fn a_poll_is_in_the_timelines_of_the_jobs_that_slurm_had_and_is_stored_once(pool: PgPool) {
    let store = store(pool.clone());
    let id = submitted(&store, 100).await;
    let waits = job(&store, 2).await.id;
    let elsewhere = CommandRun { cluster: "other".parse().unwrap(), ..run("poll", 130, Subject::Cluster) };
    let polls = [90, 110, 120].map(|seconds| run("poll", seconds, Subject::Cluster));
    store.record_commands(&polls).await.unwrap();
    store.record_commands(&[elsewhere]).await.unwrap();
    let rows: i64 = sqlx::query_scalar("select count(*) from timeline").fetch_one(&pool).await.unwrap();
    assert_eq!(rows, 4);
    sqlx::query!("update slurm_metadata set concluded_at = $1, outcome = 'done'", at(115))
        .execute(&pool)
        .await
        .unwrap();
    assert_eq!(read(&store, id).await, [("poll".to_owned(), at(110))]);
    assert_eq!(read(&store, waits).await, []);
}

#[sqlx::test(migrator = "crate::MIGRATOR")]
async fn following_a_log_for_hours_does_not_push_out_the_submission(pool: PgPool) {
    let store = store(pool.clone());
    let id = job(&store, 1).await.id;
    store.record_commands(&[run("submit", 0, of(id))]).await.unwrap();
    for batch in 0..3 {
        let reads: Vec<_> = (0..100).map(|read| run("read_logs", 1 + batch * 100 + read, of(id))).collect();
        store.record_commands(&reads).await.unwrap();
    }
    let entries = read(&store, id).await;
    assert_eq!(entries[0].0, "submit");
    let kept = usize::try_from(KEPT_OF_CLASS).unwrap();
    assert_eq!((entries.len(), entries[1].1), (1 + kept, at(201)));

    let polls: Vec<_> = (0..2500).map(|poll| run("poll", poll, Subject::Cluster)).collect();
    store.record_commands(&polls).await.unwrap();
    store.record_commands(&[run("poll", 2500, Subject::Cluster)]).await.unwrap();
    let kept: i64 = sqlx::query_scalar("select count(*) from timeline where job_id is null")
        .fetch_one(&pool)
        .await
        .unwrap();
    assert_eq!(kept, KEPT_POLLS);
}

#[sqlx::test(migrator = "crate::MIGRATOR")]
async fn a_deleted_job_takes_its_timeline_with_it_and_leaves_others_alone(pool: PgPool) {
    let store = store(pool.clone());
    let (gone, stays) = (job(&store, 1).await.id, job(&store, 2).await.id);
    store.record_commands(&[run("submit", 0, of(gone))]).await.unwrap();
    sqlx::query!("delete from jobs where id = $1", gone.get()).execute(&pool).await.unwrap();
    let late = [run("conclude", 1, of(gone)), run("submit", 2, of(stays))];
    store.record_commands(&late).await.unwrap();
    let left: Vec<Uuid> = sqlx::query_scalar("select job_id from timeline").fetch_all(&pool).await.unwrap();
    assert_eq!(left, [stays.get()]);
}
