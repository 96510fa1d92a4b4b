use std::time::Duration;

use chrono::DateTime;
use domain::{Job, Phase, Secrets, Status, Transition};
use serde_json::json;
use sqlx::PgPool;
use testkit::command_job;
use uuid::Uuid;

use super::*;
use crate::{
    DueJobs as _, InsertWith, Inserted, Lane, LeaseTerms, NewJob, PartitionTurns as _, PollResult,
    PollTurns as _, Requested, Retry, Sealer, StepRecords as _, Viewer,
};

const MOST: u32 = 3;
const MINUTE: Duration = Duration::from_mins(1);

fn store(pool: PgPool) -> Store {
    Store::from_pool(pool, Sealer::from_key([7; 32]))
}

fn dgx() -> ClusterName {
    "dgx".parse().unwrap()
}

fn identity(host: &str) -> ClusterIdentity {
    ClusterIdentity {
        user: "tao".parse().unwrap(),
        hosts: vec![host.to_owned()],
        base_dir: "/lustre/tao".parse().unwrap(),
    }
}

async fn keep(store: &Store, name: &ClusterName, host: &str) -> ClusterAdded {
    let (settings, identity, by) = (json!({"hosts": [host]}), identity(host), Owner::new("ann"));
    store
        .add_cluster(NewCluster { name, settings: &settings, identity: &identity, by: &by }, MOST)
        .await
        .unwrap()
}

/// A cluster at `login1`: its revision and its incarnation.
async fn kept(store: &Store) -> (i64, i64) {
    match keep(store, &dgx(), "login1").await {
        ClusterAdded::Done { revision, incarnation } => (revision, incarnation),
        other => panic!("{other:?}"),
    }
}

async fn replace(store: &Store, host: &str, meant: Revision) -> ClusterChange {
    let (settings, identity, by) = (json!({"hosts": [host], "x": 1}), identity(host), Owner::new("bob"));
    let (name, identity) = (dgx(), &identity);
    store
        .replace_cluster(NewCluster { name: &name, settings: &settings, identity, by: &by }, meant)
        .await
        .unwrap()
}

async fn send(store: &Store, number: u128, incarnation: i64) -> Inserted {
    let new = NewJob { job: command_job(number), secrets: Secrets::default(), request_hash: [0; 32] };
    let along = InsertWith { incarnation: Some(incarnation), ..InsertWith::default() };
    store.insert_job_with(&new, along).await.unwrap().unwrap()
}

async fn end(store: &Store, status: Status) -> Job {
    let terms = LeaseTerms { duration: MINUTE, limit: 10, only_stopped: false };
    let lease = store.acquire_due(&dgx(), Lane::Submit, Uuid::from_u128(9), terms).await.unwrap();
    let mut job = lease.jobs[0].clone();
    (job.status, job.phase, job.finished_at) = (status, Phase::Ended, Some(DateTime::UNIX_EPOCH));
    let step = Transition { job: job.clone(), due_at: None };
    assert_eq!(store.record_steps(&lease, &[step], DateTime::UNIX_EPOCH).await.unwrap().len(), 1);
    job
}

#[sqlx::test(migrator = "crate::MIGRATOR")]
async fn a_name_is_stored_once_and_the_number_of_clusters_is_limited(pool: PgPool) {
    let store = store(pool);
    let (revision, incarnation) = kept(&store).await;
    assert_eq!(keep(&store, &dgx(), "login2").await, ClusterAdded::Exists);
    for name in ["a", "b"] {
        assert!(matches!(keep(&store, &name.parse().unwrap(), "login1").await, ClusterAdded::Done { .. }));
    }
    assert_eq!(keep(&store, &"c".parse().unwrap(), "login1").await, ClusterAdded::Full);
    let all = store.stored_clusters().await.unwrap();
    assert_eq!(all.iter().map(|kept| kept.name.as_str()).collect::<Vec<_>>(), ["dgx", "a", "b"]);
    let first = &all[0];
    assert_eq!(
        (first.revision, first.incarnation, &first.created_by),
        (revision, incarnation, &Owner::new("ann"))
    );
    assert_eq!(first.settings, json!({"hosts": ["login1"]}), "the second one's settings are nowhere");
    let revisions = store.cluster_revisions().await.unwrap();
    assert_eq!(revisions[0], ("dgx".to_owned(), revision));
}

#[sqlx::test(migrator = "crate::MIGRATOR")]
async fn one_of_two_changes_of_the_same_revision_succeeds(pool: PgPool) {
    let store = store(pool);
    let (first, incarnation) = kept(&store).await;
    let ClusterChange::Done { revision, incarnation: same } =
        replace(&store, "login1", Revision::This(first)).await
    else {
        panic!("not changed")
    };
    assert!(revision > first && same == incarnation);
    assert_eq!(replace(&store, "login1", Revision::This(first)).await, ClusterChange::Changed { revision });
    assert_eq!(
        store.delete_cluster(&dgx(), Revision::This(first)).await.unwrap(),
        ClusterChange::Changed { revision }
    );
    let kept = store.stored_clusters().await.unwrap().remove(0);
    assert_eq!((kept.settings["x"].as_i64(), kept.changed_by), (Some(1), Owner::new("bob")));
    assert!(matches!(replace(&store, "login1", Revision::Any).await, ClusterChange::Done { .. }));
    assert!(matches!(store.delete_cluster(&dgx(), Revision::Any).await.unwrap(), ClusterChange::Done { .. }));
    assert_eq!(replace(&store, "login1", Revision::Any).await, ClusterChange::NoCluster);
}

#[sqlx::test(migrator = "crate::MIGRATOR")]
async fn a_cluster_with_a_live_job_is_neither_deleted_nor_replaced(pool: PgPool) {
    let store = store(pool);
    let (_, incarnation) = kept(&store).await;
    assert!(matches!(send(&store, 1, incarnation).await, Inserted::Created(_)));
    let one = ClusterWork { jobs: 1, ..ClusterWork::default() };
    let forgotten = store.delete_cluster(&dgx(), Revision::Any).await.unwrap();
    assert_eq!(forgotten, ClusterChange::InUse { work: one, differs_in: vec![] });
    let elsewhere = replace(&store, "login9", Revision::Any).await;
    assert_eq!(elsewhere, ClusterChange::InUse { work: one, differs_in: vec!["hosts"] });
    assert!(matches!(replace(&store, "login1", Revision::Any).await, ClusterChange::Done { .. }));
    let job = end(&store, Status::Done).await;
    // What was deleted with its files needs the cluster until they are gone.
    store.request_delete(job.id, &Viewer::All, true, None, DateTime::UNIX_EPOCH).await.unwrap();
    let removal = ClusterWork { removals: 1, ..ClusterWork::default() };
    let forgotten = store.delete_cluster(&dgx(), Revision::Any).await.unwrap();
    assert_eq!(forgotten, ClusterChange::InUse { work: removal, differs_in: vec![] });
    sqlx::raw_sql("delete from jobs").execute(&store.pool).await.unwrap();
    assert!(matches!(store.delete_cluster(&dgx(), Revision::Any).await.unwrap(), ClusterChange::Done { .. }));
}

#[sqlx::test(migrator = "crate::MIGRATOR")]
async fn a_job_for_a_deleted_or_replaced_cluster_is_not_stored(pool: PgPool) {
    let store = store(pool);
    let (_, incarnation) = kept(&store).await;
    let ClusterChange::Done { incarnation: other, .. } = replace(&store, "login9", Revision::Any).await
    else {
        panic!("not changed")
    };
    assert_ne!(incarnation, other);
    assert!(matches!(send(&store, 1, incarnation).await, Inserted::ClusterGone));
    assert!(matches!(send(&store, 1, other).await, Inserted::Created(_)), "nothing was stored before");
    let job = end(&store, Status::Error).await;
    let retry = async |incarnation| {
        let (viewer, secrets) = (Viewer::All, Secrets::default());
        let again = Retry { secrets: &secrets, incarnation: Some(incarnation), array: None };
        let wished = store.request_retry(job.id, &viewer, &again, None, DateTime::UNIX_EPOCH);
        matches!(wished.await.unwrap(), Requested::Taken(_))
    };
    assert!(!retry(incarnation).await);
    assert!(retry(other).await);
    end(&store, Status::Error).await;
    store.delete_cluster(&dgx(), Revision::Any).await.unwrap();
    assert!(!retry(other).await);
    assert!(matches!(send(&store, 2, other).await, Inserted::ClusterGone));
}

/// In either order: the job is stored and the cluster stays, or the cluster is deleted and the job is refused.
#[sqlx::test(migrator = "crate::MIGRATOR")]
async fn a_job_and_the_deletion_of_its_cluster_at_the_same_time_do_not_both_succeed(pool: PgPool) {
    let store = store(pool);
    for round in 0..20 {
        let (_, incarnation) = kept(&store).await;
        let name = dgx();
        let (sent, forgotten) =
            tokio::join!(send(&store, round + 1, incarnation), store.delete_cluster(&name, Revision::Any));
        let is_stored = matches!(sent, Inserted::Created(_));
        let is_gone = matches!(forgotten.unwrap(), ClusterChange::Done { .. });
        assert_ne!(is_stored, is_gone, "round {round}");
        sqlx::raw_sql("delete from jobs; delete from clusters").execute(&store.pool).await.unwrap();
    }
}

#[sqlx::test(migrator = "crate::MIGRATOR")]
async fn a_deletion_does_not_wait_for_files_on_a_deleted_cluster(pool: PgPool) {
    let store = store(pool);
    let (_, incarnation) = kept(&store).await;
    send(&store, 1, incarnation).await;
    let job = end(&store, Status::Done).await;
    let delete = async |incarnation| {
        let wished =
            store.request_delete(job.id, &Viewer::All, true, Some(incarnation), DateTime::UNIX_EPOCH);
        matches!(wished.await.unwrap(), Requested::Taken(_))
    };
    let ClusterChange::Done { incarnation: other, .. } = replace(&store, "login9", Revision::Any).await
    else {
        panic!("not changed")
    };
    assert!(!delete(incarnation).await, "it left nothing on the other one");
    store.delete_cluster(&dgx(), Revision::Any).await.unwrap();
    assert!(!delete(other).await);
    assert!(store.find_job(job.id, &Viewer::All).await.unwrap().is_some(), "it stays, and can be seen");
}

/// In either order: the removal is stored and the cluster stays, or the cluster is deleted and the request is refused.
#[sqlx::test(migrator = "crate::MIGRATOR")]
async fn a_removal_and_the_deletion_of_its_cluster_at_the_same_time_do_not_both_succeed(pool: PgPool) {
    let store = store(pool);
    for round in 0..20 {
        let (_, incarnation) = kept(&store).await;
        send(&store, round + 1, incarnation).await;
        let job = end(&store, Status::Done).await;
        let (name, all) = (dgx(), Viewer::All);
        let (wished, forgotten) = tokio::join!(
            store.request_delete(job.id, &all, true, Some(incarnation), DateTime::UNIX_EPOCH),
            store.delete_cluster(&name, Revision::Any)
        );
        let is_noted = matches!(wished.unwrap(), Requested::Taken(_));
        let is_gone = matches!(forgotten.unwrap(), ClusterChange::Done { .. });
        assert_ne!(is_noted, is_gone, "round {round}");
        sqlx::raw_sql("delete from jobs; delete from clusters").execute(&store.pool).await.unwrap();
    }
}

#[sqlx::test(migrator = "crate::MIGRATOR")]
async fn observations_of_a_cluster_do_not_apply_to_the_next_one_with_its_name(pool: PgPool) {
    let store = store(pool);
    kept(&store).await;
    let fail = async || {
        let lease = store.acquire_poll(&dgx(), Uuid::from_u128(1), MINUTE).await.unwrap().unwrap();
        let failed = PollResult::Unanswered { error: "no key", auth_required: true };
        store.record_poll(&lease, failed, Duration::from_hours(1), DateTime::UNIX_EPOCH).await.unwrap();
        store.take_partitions_turn(&dgx(), MINUTE).await.unwrap();
    };
    fail().await;
    replace(&store, "login1", Revision::Any).await;
    let state = store.poll_states().await.unwrap().remove(&dgx()).unwrap();
    assert_eq!(
        (state.failures, state.auth_required, state.error),
        (0, false, None),
        "the failures were of the old key"
    );
    fail().await;
    replace(&store, "login9", Revision::Any).await;
    assert!(store.poll_states().await.unwrap().is_empty() && store.partitions().await.unwrap().is_empty());
    fail().await;
    store.delete_cluster(&dgx(), Revision::Any).await.unwrap();
    assert!(store.poll_states().await.unwrap().is_empty() && store.partitions().await.unwrap().is_empty());
}

#[sqlx::test(migrator = "crate::MIGRATOR")]
async fn every_change_is_notified_even_one_by_hand(pool: PgPool) {
    let store = store(pool.clone());
    let mut listener = store.listen_clusters().await.unwrap();
    let (revision, incarnation) = kept(&store).await;
    let heard = async |listener: &mut ClusterListener| {
        tokio::time::timeout(Duration::from_mins(3), listener.next()).await.unwrap().unwrap();
    };
    heard(&mut listener).await;
    sqlx::raw_sql("update clusters set settings = '[]'").execute(&pool).await.unwrap();
    heard(&mut listener).await;
    let row = store.stored_clusters().await.unwrap().remove(0);
    assert!(row.revision > revision, "whoever saw it before has not seen this");
    assert_eq!((row.settings, row.incarnation), (json!([]), incarnation));
    sqlx::raw_sql("delete from clusters").execute(&pool).await.unwrap();
    heard(&mut listener).await;
}
