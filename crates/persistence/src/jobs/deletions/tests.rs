use domain::{Job, Networks, Secrets, Webhook, WebhookRequest};
use sqlx::PgPool;
use testkit::command_job;

use super::*;
use crate::{InsertWith, NewJob, Sealer};

const DAY: Duration = Duration::from_hours(24);

/// Jobs 1 to `jobs`; job n has ended n days and an hour ago.
async fn ended(pool: &PgPool, jobs: u32) -> Store {
    let store = Store::from_pool(pool.clone(), Sealer::from_key([7; 32]));
    for number in 1..=jobs {
        insert(&store, command_job(number.into()), None).await;
    }
    let days = "interval '1 day' * ('x' || right(id::text, 8))::bit(32)::int";
    run(
        pool,
        &format!(
            "update jobs set phase = 'ended', status = 'Done', due_at = null,
                 finished_at = now() - interval '1 hour' - {days}"
        ),
    )
    .await;
    store
}

/// One job that ended nine days ago and has a waiting message.
async fn with_a_message(pool: &PgPool) -> Store {
    let store = ended(pool, 0).await;
    let request = WebhookRequest {
        url: "https://example.org/hook".to_owned(),
        secret: "whsec_C2FVsBQIhrscChlQIMV+b5sSYspob7oD".to_owned(),
    };
    let webhook = Webhook::from_request(&request, &Networks::default()).unwrap();
    insert(&store, command_job(1), Some(&webhook)).await;
    let ended = "update jobs set phase = 'ended', status = 'Done', due_at = null, finished_at = now() - interval '9 days'";
    run(pool, ended).await;
    store
}

async fn insert(store: &Store, job: Job, webhook: Option<&Webhook>) {
    let new = NewJob { job, secrets: Secrets::default(), request_hash: [0; 32] };
    store.insert_job_with(&new, InsertWith { webhook, ..InsertWith::default() }).await.unwrap().unwrap();
}

/// The numbers of the stored jobs.
async fn left(pool: &PgPool) -> Vec<i32> {
    let numbers = "select ('x' || right(id::text, 8))::bit(32)::int from jobs order by 1";
    sqlx::query_scalar(numbers).fetch_all(pool).await.unwrap()
}

async fn run(pool: &PgPool, statement: &str) {
    sqlx::raw_sql(sqlx::AssertSqlSafe(statement)).execute(pool).await.unwrap();
}

async fn count(pool: &PgPool, rows: &'static str) -> i64 {
    sqlx::query_scalar(rows).fetch_one(pool).await.unwrap()
}

#[sqlx::test(migrator = "crate::MIGRATOR")]
async fn the_oldest_jobs_are_deleted_first_and_recent_ones_stay(pool: PgPool) {
    let store = ended(&pool, 6).await;
    assert_eq!(store.delete_finished(3 * DAY, 2).await.unwrap(), 2);
    assert_eq!(left(&pool).await, [1, 2, 3, 4]);
    assert_eq!(store.delete_finished(3 * DAY, 9).await.unwrap(), 2);
    assert_eq!(left(&pool).await, [1, 2]);
    assert_eq!(store.delete_finished(3 * DAY, 9).await.unwrap(), 0);
}

#[sqlx::test(migrator = "crate::MIGRATOR")]
async fn everything_about_a_job_is_deleted_with_it_and_watchers_are_notified(pool: PgPool) {
    let store = ended(&pool, 1).await;
    assert!(count(&pool, "select count(*) from job_events").await > 0);
    assert_eq!(store.delete_finished(DAY, 9).await.unwrap(), 1);
    assert_eq!(count(&pool, "select count(*) from job_events").await, 0);
    // The stored id identifies files on the cluster as those of a deleted job, and watchers get its deletion.
    assert_eq!(count(&pool, "select count(*) from deleted_jobs where owner is not null").await, 1);
}

#[sqlx::test(migrator = "crate::MIGRATOR")]
async fn a_job_that_has_not_ended_stays_however_old(pool: PgPool) {
    let store = ended(&pool, 3).await;
    run(
        &pool,
        "update jobs set phase = 'paused', status = 'Paused', finished_at = null where id::text like '%1'",
    )
    .await;
    run(&pool, "update jobs set desired_state = 'delete', due_at = now() where id::text like '%2'").await;
    assert_eq!(store.delete_finished(Duration::ZERO, 9).await.unwrap(), 1);
    assert_eq!(left(&pool).await, [1, 2]);
}

#[sqlx::test(migrator = "crate::MIGRATOR")]
async fn a_job_with_a_waiting_message_stays_until_its_delivery(pool: PgPool) {
    let store = with_a_message(&pool).await;
    assert_eq!(store.delete_finished(DAY, 9).await.unwrap(), 0);
    run(&pool, "update webhook_deliveries set state = 'dead'").await;
    assert_eq!(store.delete_finished(DAY, 9).await.unwrap(), 1);
}

#[sqlx::test(migrator = "crate::MIGRATOR")]
async fn a_redelivery_that_was_requested_before_the_lock_keeps_the_job(pool: PgPool) {
    let store = with_a_message(&pool).await;
    run(&pool, "update webhook_deliveries set state = 'dead'").await;
    let mut tx = store.begin().await.unwrap();
    let held = hold_finished(&mut tx, DAY, 9).await.unwrap();
    assert_eq!(held.len(), 1);
    // As if a redelivery had been requested just before the lock; now it is too late for one.
    run(&pool, "update webhook_deliveries set state = 'pending'").await;
    assert_eq!(delete_held(&mut tx, &held).await.unwrap(), 0);
}

#[sqlx::test(migrator = "crate::MIGRATOR")]
async fn a_job_that_is_locked_is_skipped(pool: PgPool) {
    let store = ended(&pool, 2).await;
    let mut other = crate::store::begin(&pool).await.unwrap();
    sqlx::raw_sql("select from jobs where id::text like '%2' for update").execute(&mut *other).await.unwrap();
    assert_eq!(store.delete_finished(DAY, 9).await.unwrap(), 1);
    other.rollback().await.unwrap();
    assert_eq!(left(&pool).await, [2]);
}

#[sqlx::test(migrator = "crate::MIGRATOR")]
async fn jobs_with_many_events_are_deleted_one_by_one(pool: PgPool) {
    let store = ended(&pool, 3).await;
    run(&pool, "update jobs set events = 10000 where id::text like '%2'").await;
    assert_eq!(store.delete_finished(DAY, 9).await.unwrap(), 2);
    assert_eq!(left(&pool).await, [1]);
    assert_eq!(store.delete_finished(DAY, 9).await.unwrap(), 1);
}
