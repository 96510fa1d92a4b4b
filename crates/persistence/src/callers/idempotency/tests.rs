use domain::Secrets;
use sqlx::PgPool;
use testkit::command_job;

use super::*;
use crate::{InsertWith, Inserted, NewJob, Sealer};

fn once(key: &str, body: u8) -> Once {
    Once {
        owner: Owner::new("ann"),
        key: key.to_owned(),
        operation: "create_job".to_owned(),
        request_hash: [body; 32],
        keep: Duration::from_mins(1),
    }
}

async fn insert(store: &Store, new: &NewJob, once: &Once) -> Option<Inserted> {
    store.insert_job_with(new, InsertWith { once: Some(once), ..InsertWith::default() }).await.unwrap()
}

#[sqlx::test(migrator = "crate::MIGRATOR")]
async fn a_key_is_stored_with_its_job_or_not_at_all(pool: PgPool) {
    let store = Store::from_pool(pool, Sealer::from_key([7; 32]));
    let new =
        |number| NewJob { job: command_job(number), secrets: Secrets::default(), request_hash: [1; 32] };
    assert_eq!(store.known(&once("k", 1)).await.unwrap(), Known::New);
    assert!(insert(&store, &new(1), &once("k", 1)).await.is_some());
    let answered = Known::Answered { job: new(1).job.id, status: 201 };
    assert_eq!(store.known(&once("k", 1)).await.unwrap(), answered);
    // Another body, another operation: another request.
    assert_eq!(store.known(&once("k", 2)).await.unwrap(), Known::Other);
    let retry = Once { operation: "retry_job".to_owned(), ..once("k", 1) };
    assert_eq!(store.known(&retry).await.unwrap(), Known::Other);
    // The second finds the key taken, and its job is taken back.
    assert!(insert(&store, &new(2), &once("k", 1)).await.is_none());
    assert!(store.find_job(new(2).job.id, &crate::Viewer::All).await.unwrap().is_none());
}

#[sqlx::test(migrator = "crate::MIGRATOR")]
async fn the_stored_hash_of_a_body_cannot_be_guessed(pool: PgPool) {
    let store = Store::from_pool(pool.clone(), Sealer::from_key([7; 32]));
    let new = NewJob { job: command_job(1), secrets: Secrets::default(), request_hash: [1; 32] };
    insert(&store, &new, &once("k", 1)).await;
    let stored =
        sqlx::query_scalar!("select request_hash from idempotency_keys").fetch_one(&pool).await.unwrap();
    assert_ne!(stored, [1; 32]);
}

#[sqlx::test(migrator = "crate::MIGRATOR")]
async fn a_request_with_a_key_deletes_expired_keys_of_all_owners(pool: PgPool) {
    let store = Store::from_pool(pool.clone(), Sealer::from_key([7; 32]));
    let new =
        |number| NewJob { job: command_job(number), secrets: Secrets::default(), request_hash: [1; 32] };
    insert(&store, &new(1), &once("old", 1)).await;
    sqlx::query!("update idempotency_keys set owner = 'bob', created_at = now() - interval '2 min'")
        .execute(&pool)
        .await
        .unwrap();
    insert(&store, &new(2), &once("new", 1)).await;
    let kept = sqlx::query_scalar!("select key from idempotency_keys").fetch_all(&pool).await.unwrap();
    assert_eq!(kept, ["new"]);
}
