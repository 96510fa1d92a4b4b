use domain::Secrets;
use sqlx::PgPool;
use testkit::command_job;

use super::*;
use crate::Sealer;

const DIGEST: [u8; 32] = [5; 32];

/// The service with this sealing key, as after a start.
fn started(pool: &PgPool, key: u8) -> Store {
    Store::from_pool(pool.clone(), Sealer::from_key([key; 32]))
}

fn request(digest: [u8; 32]) -> NewJob {
    NewJob { job: command_job(1), secrets: Secrets::default(), request_hash: digest }
}

#[sqlx::test(migrator = "crate::MIGRATOR")]
async fn the_same_request_is_known_again_after_a_restart_and_by_the_same_key_only(pool: PgPool) {
    let created = started(&pool, 7).insert_job(&request(DIGEST)).await.unwrap();
    assert!(matches!(created, Inserted::Created(_)));
    let again = started(&pool, 7).insert_job(&request(DIGEST)).await.unwrap();
    assert!(matches!(again, Inserted::Same(_)), "{again:?}");
    let other = started(&pool, 7).insert_job(&request([6; 32])).await.unwrap();
    assert!(matches!(other, Inserted::Other), "{other:?}");
    let other_key = started(&pool, 8).insert_job(&request(DIGEST)).await.unwrap();
    assert!(matches!(other_key, Inserted::Other), "what cannot be told is refused: {other_key:?}");
}

#[sqlx::test(migrator = "crate::MIGRATOR")]
async fn a_dump_of_the_database_tells_nobody_whether_a_guess_is_right(pool: PgPool) {
    started(&pool, 7).insert_job(&request(DIGEST)).await.unwrap();
    let stored = sqlx::query_scalar!("select request_hash from jobs").fetch_one(&pool).await.unwrap();
    assert_ne!(stored, DIGEST, "whoever guesses the request can make its digest");
    assert_ne!(stored, started(&pool, 8).sealer.code(&DIGEST), "and a code without the key");
}

#[sqlx::test(migrator = "crate::MIGRATOR")]
async fn the_largest_and_the_smallest_numbers_come_back(pool: PgPool) {
    let mut new = request(DIGEST);
    let numbers = serde_json::json!([f64::MAX, f64::MIN, 5e-324, 1e20, u64::MAX, i64::MIN]);
    new.job.spec.cloud_plain.insert("numbers".to_owned(), numbers.clone());
    let store = started(&pool, 7);
    let Inserted::Created(created) = store.insert_job(&new).await.unwrap() else { panic!("not created") };
    assert_eq!(created.spec.cloud_plain["numbers"], numbers);
}
