use std::time::Duration;

use domain::{Networks, Phase, Secrets, WebhookRequest};
use sqlx::PgPool;
use strum::IntoEnumIterator as _;
use testkit::command_job;
use uuid::Uuid;

use super::*;
use crate::{DueJobs as _, DueNotice, DueNotices as _, LeaseTerms, Sealer};

const DIGEST: [u8; 32] = [5; 32];

/// The store of a service with this sealing key.
fn started(pool: &PgPool, key: u8) -> Store {
    Store::from_pool(pool.clone(), Sealer::from_key([key; 32]))
}

fn request(digest: [u8; 32]) -> NewJob {
    NewJob { job: command_job(1), secrets: Secrets::default(), request_hash: digest }
}

#[sqlx::test(migrator = "crate::MIGRATOR")]
async fn the_same_request_is_recognized_after_a_restart_and_only_with_the_same_key(pool: PgPool) {
    let created = started(&pool, 7).insert_job(&request(DIGEST)).await.unwrap();
    assert!(matches!(created, Inserted::Created(_)));
    let again = started(&pool, 7).insert_job(&request(DIGEST)).await.unwrap();
    assert!(matches!(again, Inserted::Same(_)), "{again:?}");
    let other = started(&pool, 7).insert_job(&request([6; 32])).await.unwrap();
    assert!(matches!(other, Inserted::Other), "{other:?}");
    let other_key = started(&pool, 8).insert_job(&request(DIGEST)).await.unwrap();
    assert!(matches!(other_key, Inserted::Other), "an unknown code is refused: {other_key:?}");
}

#[sqlx::test(migrator = "crate::MIGRATOR")]
async fn a_dump_of_the_database_does_not_confirm_a_guess(pool: PgPool) {
    started(&pool, 7).insert_job(&request(DIGEST)).await.unwrap();
    let stored = sqlx::query_scalar!("select request_hash from jobs").fetch_one(&pool).await.unwrap();
    assert_ne!(stored, DIGEST, "whoever guesses the request can make its digest");
    assert_ne!(stored, started(&pool, 8).sealer.code(&DIGEST), "and a code without the key");
}

#[sqlx::test(migrator = "crate::MIGRATOR")]
async fn the_largest_and_the_smallest_numbers_are_read_back(pool: PgPool) {
    let mut new = request(DIGEST);
    let numbers = serde_json::json!([f64::MAX, f64::MIN, 5e-324, 1e20, u64::MAX, i64::MIN]);
    new.job.spec.cloud_plain.insert("numbers".to_owned(), numbers.clone());
    let store = started(&pool, 7);
    store.insert_job(&new).await.unwrap();
    let stored = store.find_job(new.job.id, &Viewer::All).await.unwrap().unwrap();
    assert_eq!(stored.spec.cloud_plain["numbers"], numbers);
}

fn webhook() -> Webhook {
    let request = WebhookRequest {
        url: "https://example.org/hook".to_owned(),
        secret: "whsec_C2FVsBQIhrscChlQIMV+b5sSYspob7oD".to_owned(),
    };
    Webhook::from_request(&request, &Networks::default()).unwrap()
}

/// The response to a new job is not read back from the database.
#[sqlx::test(migrator = "crate::MIGRATOR")]
async fn a_new_job_is_returned_as_it_is_stored(pool: PgPool) {
    let store = started(&pool, 7);
    for (id, webhook) in [(1, None), (2, Some(webhook()))] {
        let mut new = NewJob { job: command_job(id), ..request(DIGEST) };
        new.job.created_at = chrono::DateTime::from_timestamp_nanos(1_763_000_000_123_456_789);
        let along = InsertWith { webhook: webhook.as_ref(), ..InsertWith::default() };
        let Some(Inserted::Created(told)) = store.insert_job_with(&new, along).await.unwrap() else {
            panic!("not created")
        };
        let stored = store.find_job(told.id, &Viewer::All).await.unwrap().unwrap();
        assert_eq!(format!("{told:?}"), format!("{stored:?}"));
    }
}

/// The other lane is not woken.
#[sqlx::test(migrator = "crate::MIGRATOR")]
async fn a_new_job_wakes_the_submit_lane_and_a_request_the_lane_that_carries_it_out(pool: PgPool) {
    let store = started(&pool, 7);
    let mut listener = store.listen_due().await.unwrap();
    let new = request(DIGEST);
    store.insert_job(&new).await.unwrap();
    let notice = |lane| Some(DueNotice { cluster: new.job.cluster.clone(), lane: Some(lane) });
    assert_eq!(listener.next().await.unwrap(), notice(Lane::Submit));
    let now = new.job.created_at;
    store.request_cancel(new.job.id, &Viewer::All, now).await.unwrap();
    assert_eq!(listener.next().await.unwrap(), notice(Lane::Submit));
    sqlx::query!("update jobs set phase = 'running', desired_state = 'run'").execute(&pool).await.unwrap();
    store.request_cancel(new.job.id, &Viewer::All, now).await.unwrap();
    assert_eq!(listener.next().await.unwrap(), notice(Lane::Follow));
}

/// Two statements assign phases to lanes, and so does `Lane::of` for notifications.
#[sqlx::test(migrator = "crate::MIGRATOR")]
async fn jobs_are_due_in_the_lane_of_their_phase(pool: PgPool) {
    let store = started(&pool, 7);
    let new = request(DIGEST);
    store.insert_job(&new).await.unwrap();
    for phase in Phase::iter().filter(|phase| *phase != Phase::Ended) {
        let name: &str = phase.into();
        sqlx::query!("update jobs set phase = $1, due_at = now()", name).execute(&pool).await.unwrap();
        for lane in [Lane::Submit, Lane::Follow] {
            let due = store.next_due_in(&new.job.cluster, lane).await.unwrap();
            assert_eq!(due.is_some(), Lane::of(phase) == lane, "{phase} in {lane}");
            let terms = LeaseTerms { duration: Duration::from_secs(9), limit: 1, only_stopped: false };
            let lease = store.acquire_due(&new.job.cluster, lane, Uuid::from_u128(9), terms).await.unwrap();
            assert_eq!(lease.jobs.len() == 1, Lane::of(phase) == lane, "{phase} in {lane}");
            store.put_off(&lease, &lease.jobs, Some(Duration::ZERO)).await.unwrap();
        }
    }
}
