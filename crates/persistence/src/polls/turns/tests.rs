use chrono::DateTime;
use sqlx::PgPool;

use super::*;
use crate::Sealer;

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
    store.record_poll(&lease, PollResult::Answered, LEASE, T0).await.unwrap();
    assert!(acquire(&store, 2).await.is_none());
    let pulse = store.pulses().await.unwrap()[&dgx()];
    assert_eq!((pulse.polled_at, pulse.interval), (Some(T0), LEASE));
    store.poll_soon(&dgx(), Duration::ZERO).await.unwrap();
    assert!(acquire(&store, 3).await.is_some());
}

#[sqlx::test(migrator = "crate::MIGRATOR")]
async fn an_unanswered_poll_keeps_the_time_of_the_last_answer(pool: PgPool) {
    let store = store(pool);
    let lease = acquire(&store, 1).await.unwrap();
    store.record_poll(&lease, PollResult::Answered, Duration::ZERO, T0).await.unwrap();
    let lease = acquire(&store, 2).await.unwrap();
    let later = T0 + chrono::TimeDelta::hours(1);
    store
        .record_poll(&lease, PollResult::Unanswered { error: "no route", auth_required: false }, LEASE, later)
        .await
        .unwrap();
    assert_eq!(store.pulses().await.unwrap()[&dgx()].polled_at, Some(T0));
}

#[sqlx::test(migrator = "crate::MIGRATOR")]
async fn the_unreachable_time_of_a_cluster_adds_up(pool: PgPool) {
    let store = store(pool);
    let at = |minutes| T0 + TimeDelta::minutes(minutes);
    let poll = async |token, now| {
        let lease = acquire(&store, token).await.unwrap();
        let unreachable_for = lease.unreachable_for(now);
        sqlx::raw_sql("update cluster_polls set due_at = now()").execute(&store.pool).await.unwrap();
        store.record_poll(&lease, PollResult::Answered, Duration::ZERO, now).await.unwrap();
        unreachable_for.num_minutes()
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
async fn failures_are_counted_and_explained(pool: PgPool) {
    let store = Store::from_pool(pool, Sealer::from_key([7; 32]));
    let dgx: ClusterName = "dgx".parse().unwrap();
    for token in 1..=2 {
        let lease = store.acquire_poll(&dgx, Uuid::from_u128(token), Duration::from_mins(1)).await.unwrap();
        let failed = PollResult::Unanswered { error: "no route", auth_required: true };
        store.record_poll(&lease.unwrap(), failed, Duration::ZERO, DateTime::UNIX_EPOCH).await.unwrap();
    }
    let states = store.poll_states().await.unwrap();
    let state = &states[&dgx];
    assert_eq!((state.failures, state.error.as_deref(), state.auth_required), (2, Some("no route"), true));
    assert_eq!((state.polled_at, state.active_jobs), (None, 0));
}
