//! `?wait=`: an answer at the next change.

use std::{
    future::Future,
    time::{Duration, Instant},
};

use axum::{body::Body, http::Request};
use serde_json::json;
use sqlx::PgPool;
use tokio::time::timeout;

use crate::support::{Answer, TestApi};

/// Less than the callers wait for.
const LONG: Duration = Duration::from_secs(50);

/// Lets a request begin to wait, and then something happen.
async fn meanwhile(
    api: &TestApi,
    id: &str,
    waiting: impl Future<Output = Answer>,
    event: impl Future<Output = ()>,
) -> Answer {
    let mut waiting = std::pin::pin!(waiting);
    assert!(timeout(Duration::from_millis(300), &mut waiting).await.is_err(), "it waits");
    // Requests read a job in the order of their arrival: when this one has, the other has, too.
    Box::pin(api.get(&format!("/jobs/{id}/status"))).await;
    event.await;
    timeout(LONG, waiting).await.expect("an answer at the change")
}

async fn ask(api: &TestApi, path: &str, etag: Option<&str>) -> Answer {
    let mut request = Request::get(path);
    if let Some(etag) = etag {
        request = request.header("if-none-match", etag);
    }
    api.send(request.body(Body::empty()).unwrap()).await
}

#[sqlx::test(migrator = "persistence::MIGRATOR")]
async fn a_status_is_answered_at_the_next_change(pool: PgPool) {
    let api = TestApi::new(pool);
    let id = api.job(&json!({"command": "true"})).await;
    let path = format!("/jobs/{id}/status?wait=60");
    for path in [path.clone(), format!("/jobs/{id}?wait=60")] {
        let before = api.get(&format!("/jobs/{id}/status")).await.json()["version"].as_i64().unwrap();
        let change = async {
            api.fail(&id, 4711).await;
        };
        let answer = Box::pin(meanwhile(&api, &id, ask(&api, &path, None), change)).await;
        assert_eq!(answer.status, 200);
        assert!(answer.json()["version"].as_i64().unwrap() > before);
    }
    // Against what the client knows: at once if that is old.
    let old = ask(&api, &path, Some(r#""1-0-0""#)).await;
    let etag = old.header("etag").to_owned();
    assert_eq!(old.status, 200);
    let answer = meanwhile(&api, &id, ask(&api, &path, Some(&etag)), Box::pin(api.end(&id))).await;
    assert_eq!(answer.json()["status"], "Done");
    assert_ne!(answer.header("etag"), etag);
    // Nothing is waited for any more, but by one who knows the end already.
    assert_eq!(ask(&api, &path, None).await.json()["status"], "Done");
    let path = format!("/jobs/{id}/status?wait=1");
    let (began, known) = (Instant::now(), answer.header("etag").to_owned());
    assert_eq!(ask(&api, &path, Some(&known)).await.status, 304);
    assert!(began.elapsed() >= Duration::from_secs(1));
}

#[sqlx::test(migrator = "persistence::MIGRATOR")]
async fn a_change_by_another_process_is_noticed(pool: PgPool) {
    let (api, other) = (TestApi::new(pool.clone()), TestApi::new(pool));
    let id = api.job(&json!({"command": "true"})).await;
    let path = format!("/jobs/{id}/status?wait=60");
    let cancel = async {
        assert_eq!(other.post(&format!("/jobs/{id}/cancel"), &json!({})).await.status, 202);
    };
    let answer = meanwhile(&api, &id, ask(&api, &path, None), cancel).await;
    assert_eq!(answer.json()["status"], "Canceling");
}

#[sqlx::test(migrator = "persistence::MIGRATOR")]
async fn a_wait_for_a_job_that_is_deleted_ends_with_404(pool: PgPool) {
    let api = TestApi::new(pool);
    let id = api.job(&json!({"command": "true"})).await;
    api.end(&id).await;
    let path = format!("/jobs/{id}/status");
    let etag = api.get(&path).await.header("etag").to_owned();
    let delete = async {
        let request = Request::delete(format!("/jobs/{id}")).body(Body::empty()).unwrap();
        assert_eq!(api.send(request).await.status, 204);
    };
    let answer = meanwhile(&api, &id, ask(&api, &format!("{path}?wait=60"), Some(&etag)), delete).await;
    answer.problem(404, "job_not_found");
}

#[sqlx::test(migrator = "persistence::MIGRATOR")]
async fn a_service_that_stops_answers_waiting_callers(pool: PgPool) {
    let api = TestApi::new(pool);
    let id = api.job(&json!({"command": "true"})).await;
    let stop = async { api.stop.cancel() };
    let path = format!("/jobs/{id}/status?wait=60");
    assert_eq!(meanwhile(&api, &id, ask(&api, &path, None), stop).await.json()["status"], "Pending");
}

#[sqlx::test(migrator = "persistence::MIGRATOR")]
async fn a_wait_is_longer_than_other_requests_may_take_and_bounded(pool: PgPool) {
    let limits = api::Limits { request_timeout: Duration::from_secs(5), ..api::Limits::default() };
    let api = TestApi::limited(pool, limits);
    let id = api.job(&json!({"command": "true"})).await;
    let began = Instant::now();
    assert_eq!(ask(&api, &format!("/jobs/{id}/status?wait=6"), None).await.status, 200);
    assert!(began.elapsed() >= Duration::from_secs(6));
    for wrong in ["wait=61", "wait=-1", "wait=soon", "wait=1&wait=2"] {
        ask(&api, &format!("/jobs/{id}/status?{wrong}"), None).await.problem(400, "invalid_parameter");
    }
}

#[sqlx::test(migrator = "persistence::MIGRATOR")]
async fn a_change_without_a_notification_is_found_by_the_sweep(pool: PgPool) {
    let api = TestApi::unheard(pool).await;
    let id = api.job(&json!({"command": "true"})).await;
    let mut events = api.events(&format!("/jobs/{id}/events"), None).await;
    assert_eq!(events.next().await.unwrap().data["data"]["phase"], "queued");
    let path = format!("/jobs/{id}/status?wait=60");
    let answer = meanwhile(&api, &id, ask(&api, &path, None), Box::pin(api.end(&id))).await;
    assert_eq!(answer.json()["status"], "Done");
    assert_eq!(events.next().await.unwrap().data["data"]["phase"], "ended");
}
