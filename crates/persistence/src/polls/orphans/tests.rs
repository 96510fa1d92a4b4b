use std::time::Duration;

use chrono::DateTime;
use domain::{Ahead, OrphanKind, Phase, Secrets, Status, Transition};
use sqlx::PgPool;
use testkit::command_job;
use uuid::Uuid;

use super::*;
use crate::{
    DueJobs as _, Inserted, Lane, LeaseTerms, NewJob, PollTurns as _, Sealer, StepRecords as _, StoreError,
    Viewer,
};

const LEASE: Duration = Duration::from_mins(1);
const T0: Timestamp = DateTime::UNIX_EPOCH;

fn store(pool: &PgPool) -> Store {
    Store::from_pool(pool.clone(), Sealer::from_key([7; 32]))
}

fn dgx() -> ClusterName {
    "dgx".parse().unwrap()
}

/// A job whose first attempt Slurm has under id 7.
async fn active_job(store: &Store) -> domain::Job {
    let new = NewJob { job: command_job(1), secrets: Secrets::default(), request_hash: [0; 32] };
    let Inserted::Created(mut job) = store.insert_job(&new).await.unwrap() else { panic!("not created") };
    let terms = LeaseTerms { duration: LEASE, limit: 1, only_stopped: false };
    let lease = store.acquire_due(&dgx(), Lane::Submit, Uuid::from_u128(9), terms).await.unwrap();
    let mut attempt = job.new_attempt("/lustre/tao".parse().unwrap(), T0).unwrap();
    attempt.slurm_id = SlurmJobId::new(7);
    attempt.submitted_at = Some(T0);
    job.attempt = Some(attempt);
    job.phase = Phase::InQueue;
    let id = job.id;
    store.record_steps(&lease, &[Transition { job, due_at: None }], T0).await.unwrap();
    store.find_job(id, &Viewer::All).await.unwrap().unwrap()
}

async fn record(store: &Store, cluster: &ClusterName, origin: Origin) -> Record {
    store.records_of(cluster, &[origin, origin]).await.unwrap()[&origin]
}

#[sqlx::test(migrator = "crate::MIGRATOR")]
async fn a_job_is_known_by_its_newest_attempt_or_elsewhere_or_deleted_or_unknown(pool: PgPool) {
    let store = store(&pool);
    let job = active_job(&store).await;
    let no = AttemptNo::FIRST;
    let origin = Origin { job: job.id, no };
    let slurm_id = SlurmJobId::new(7);
    assert_eq!(
        record(&store, &dgx(), origin).await,
        Record::Known { newest: Some(no), open: true, slurm_id, ahead: Ahead::Never }
    );
    assert_eq!(record(&store, &"other".parse().unwrap(), origin).await, Record::Elsewhere);
    for concluded in [
        "update slurm_metadata set concluded_at = now(), outcome = 'retried'",
        "update jobs set phase = 'ended', status = 'Done', secrets = null, finished_at = now(), due_at = null",
    ] {
        let mut tx = crate::store::begin(&pool).await.unwrap();
        sqlx::raw_sql(concluded).execute(&mut *tx).await.unwrap();
        tx.commit().await.unwrap();
        let open = Record::Known { newest: Some(no), open: false, slurm_id, ahead: Ahead::Never };
        assert_eq!(record(&store, &dgx(), origin).await, open, "{concluded}");
    }
    sqlx::raw_sql("delete from jobs").execute(&pool).await.unwrap();
    assert_eq!(record(&store, &dgx(), origin).await, Record::Deleted);
    let stranger = Origin { job: domain::JobId::new(Uuid::from_u128(77)), no };
    assert_eq!(record(&store, &dgx(), stranger).await, Record::None);
}

fn orphan(number: u32, name: &str) -> Orphan {
    Orphan {
        slurm_id: SlurmJobId::new(number).unwrap(),
        name: name.parse().unwrap(),
        kind: OrphanKind::Superseded,
        state: "RUNNING".to_owned(),
        first_seen_at: T0,
        cancel_sent_at: Some(T0),
    }
}

#[sqlx::test(migrator = "crate::MIGRATOR")]
async fn orphans_are_stored_and_canceled_ones_are_events_of_their_job(pool: PgPool) {
    let store = store(&pool);
    let job = active_job(&store).await;
    let name = format!("tao-job-{}", job.id);
    let orphans = [
        orphan(11, &name),
        orphan(12, &name),
        orphan(13, &name),
        orphan(14, "tao-job-00000000-0000-0000-0000-0000000000ff"),
    ];
    let condemned: Vec<_> = [11, 13, 14].into_iter().filter_map(SlurmJobId::new).collect();
    let events = async || {
        store.place_events().await.unwrap();
        store.job_feed(job.id, 0, 0, &[], 100).await.unwrap()
    };
    let before = events().await.len();
    let noted = "insert into unaccounted (cluster, slurm_job_id, token, job_id, attempt, owner, labels, ask_at, found)
                 select 'dgx', id, 'tao-' || id, gen_random_uuid(), 1, 'ann', '{}', 'infinity', true from unnest(array[11, 12]) id";
    sqlx::raw_sql(noted).execute(&pool).await.unwrap();
    let lease = store.acquire_poll(&dgx(), Uuid::from_u128(1), LEASE).await.unwrap().unwrap();
    assert_eq!(lease.orphans, []);
    store.record_orphans(&lease, &orphans, &condemned, T0).await.unwrap();
    let again = "select slurm_job_id from unaccounted where slurm_job_id > 10 and not found and ask_at < now() + interval '61 seconds'";
    let again: Vec<i64> = sqlx::query_scalar(again).fetch_all(&pool).await.unwrap();
    assert_eq!(again, [11], "accounting is asked again about a job that is canceled");
    let after = events().await;
    let told = after[before..].iter().map(|of_feed| &of_feed.event);
    let told: Vec<_> = told.map(|event| (event.kind.as_str(), &event.data["slurm_job_id"])).collect();
    assert_eq!(told, [("orphan", &json!("11")), ("orphan", &json!("13"))]);
    assert_eq!(store.poll_states().await.unwrap()[&dgx()].orphans, orphans);
    let kept = store.find_job(job.id, &Viewer::All).await.unwrap().unwrap();
    assert_eq!(
        (kept.version, kept.status),
        (job.version, Status::Pending),
        "a poll that has read the job may write it"
    );

    store.record_poll(&lease, crate::PollResult::Answered, Duration::ZERO, T0).await.unwrap();
    let next = store.acquire_poll(&dgx(), Uuid::from_u128(2), LEASE).await.unwrap().unwrap();
    assert_eq!(next.orphans, orphans, "the next worker's poll knows them");
    let refused = store.record_orphans(&lease, &[], &condemned, T0).await;
    assert!(matches!(refused, Err(StoreError::LeaseLost { .. })), "{refused:?}");
    assert_eq!(events().await.len(), after.len());
}

#[sqlx::test(migrator = "crate::MIGRATOR")]
async fn unreadable_orphans_are_found_again(pool: PgPool) {
    let store = store(&pool);
    let lease = store.acquire_poll(&dgx(), Uuid::from_u128(1), LEASE).await.unwrap().unwrap();
    store.record_poll(&lease, crate::PollResult::Idle, Duration::ZERO, T0).await.unwrap();
    sqlx::raw_sql("update cluster_polls set orphans = '[{\"kind\": \"new\"}]'").execute(&pool).await.unwrap();
    let lease = store.acquire_poll(&dgx(), Uuid::from_u128(2), LEASE).await.unwrap().unwrap();
    assert_eq!(lease.orphans, []);
}
