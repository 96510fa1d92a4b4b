use chrono::DateTime;
use remote::{RawOutput, RemoteCommand};
use sqlx::PgPool;

use super::*;
use crate::Sealer;

const T0: Timestamp = DateTime::UNIX_EPOCH;
const EVERY: Duration = Duration::from_mins(5);

fn store(pool: PgPool) -> Store {
    Store::from_pool(pool, Sealer::from_key([7; 32]))
}

fn dgx() -> ClusterName {
    "dgx".parse().unwrap()
}

fn answer() -> PartitionsAnswer {
    let stdout = "ENFORCE ALL\nSHOW PartitionName=polar MaxNodes=2 AllowAccounts=a,b\n\
                  ROW polar*|up|4:00:00|n/a|4|idle|64|512000|gpu:a100:8\nEND 3\n";
    let raw = RawOutput { stdout: stdout.as_bytes().to_vec(), ..RawOutput::default() };
    remote::Partitions.parse(&raw).unwrap()
}

#[sqlx::test(migrator = "crate::MIGRATOR")]
async fn partitions_are_read_as_they_were_stored(pool: PgPool) {
    let store = store(pool);
    assert!(store.take_partitions_turn(&dgx(), EVERY).await.unwrap());
    let unasked = store.partitions().await.unwrap().remove(&dgx()).unwrap();
    assert!(unasked.fetched_at.is_none() && unasked.limits(T0).is_none() && unasked.is_stale(T0));
    store.record_partitions(&dgx(), &answer(), EVERY, T0).await.unwrap();
    let known = store.partitions().await.unwrap().remove(&dgx()).unwrap();
    assert_eq!(known.partitions, answer().partitions);
    assert_eq!((known.all_must_allow, known.fetched_at, known.interval), (true, Some(T0), EVERY));
    let limits = known.limits(T0 + TimeDelta::minutes(15)).unwrap();
    assert!(limits.fresh && limits.all_must_allow);
    assert!(!known.limits(T0 + TimeDelta::minutes(16)).unwrap().fresh);
}

#[sqlx::test(migrator = "crate::MIGRATOR")]
async fn only_one_worker_refreshes_until_the_next_turn(pool: PgPool) {
    let store = store(pool);
    let dgx = dgx();
    let take = || store.take_partitions_turn(&dgx, EVERY);
    let (one, other) = tokio::join!(take(), take());
    assert!(one.unwrap() ^ other.unwrap());
    store.record_partitions(&dgx, &answer(), EVERY, T0).await.unwrap();
    assert!(!take().await.unwrap());
    let next = store.next_partitions_in(&dgx).await.unwrap().unwrap();
    assert!(next > EVERY / 2 && next <= EVERY, "{next:?}");
    store.record_partitions(&dgx, &answer(), Duration::ZERO, T0).await.unwrap();
    assert!(take().await.unwrap());
}

#[sqlx::test(migrator = "crate::MIGRATOR")]
async fn a_failed_refresh_keeps_the_last_answer(pool: PgPool) {
    let store = store(pool);
    store.take_partitions_turn(&dgx(), EVERY).await.unwrap();
    store.record_partitions(&dgx(), &answer(), EVERY, T0).await.unwrap();
    let later = T0 + TimeDelta::minutes(5);
    store.record_partitions_unanswered(&dgx(), "no \0 route", EVERY, later).await.unwrap();
    let known = store.partitions().await.unwrap().remove(&dgx()).unwrap();
    assert_eq!((known.fetched_at, known.partitions.len()), (Some(T0), 1));
    assert_eq!(known.error, Some(("no   route".to_owned(), later)));
    store.record_partitions(&dgx(), &answer(), EVERY, later).await.unwrap();
    assert_eq!(store.partitions().await.unwrap()[&dgx()].error, None);
}

#[sqlx::test(migrator = "crate::MIGRATOR")]
async fn an_unreadable_row_does_not_hide_others(pool: PgPool) {
    let store = store(pool);
    store.take_partitions_turn(&dgx(), EVERY).await.unwrap();
    sqlx::query!("update cluster_partitions set partitions = '[{\"name\": 1}]'")
        .execute(&store.pool)
        .await
        .unwrap();
    store.take_partitions_turn(&"lab".parse().unwrap(), EVERY).await.unwrap();
    let known = store.partitions().await.unwrap();
    assert_eq!(known.keys().map(ClusterName::as_str).collect::<Vec<_>>(), ["lab"]);
}
