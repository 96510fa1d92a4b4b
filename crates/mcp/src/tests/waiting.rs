//! `get_status` with a wait.

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};

use axum::{
    Json,
    http::StatusCode,
    response::{IntoResponse, Response},
};
use serde_json::{Value, json};

use super::{
    answers::{JOB, changed, status},
    fake_api::{Asked, FakeApi},
};

/// An API whose job has these statuses and messages one after the other, and no further change.
fn changing(course: &'static [(&'static str, &'static str)]) -> FakeApi {
    let api = FakeApi::new();
    let next = Arc::new(AtomicUsize::new(0));
    api.with(&format!("GET /jobs/{JOB}/status"), move |asked: &Asked| -> Response {
        let at = next.fetch_add(1, Ordering::Relaxed);
        let Some((status_word, message)) = course.get(at) else {
            return StatusCode::NOT_MODIFIED.into_response();
        };
        if at > 0 {
            assert_eq!(
                asked.headers["if-none-match"],
                format!("\"{}\"", at - 1),
                "a change between two requests is lost"
            );
        }
        let seen = changed(status(), &json!({"status": status_word, "message": message}));
        ([("etag", format!("\"{at}\""))], Json(seen)).into_response()
    });
    api
}

async fn waited(api: &FakeApi, arguments: Value) -> Value {
    api.tools().data("get_status", changed(json!({"job_id": JOB}), &arguments)).await
}

#[tokio::test]
async fn a_wait_ends_when_the_status_changes_and_not_for_another_message() {
    let api = changing(&[("Running", "10 %"), ("Running", "20 %"), ("Running", "30 %"), ("Done", "Done.")]);
    let data = waited(&api, json!({"wait_seconds": 40})).await;
    assert_eq!(
        (&data["job"]["status"], &data["ended"], &data["changed"]),
        (&json!("Done"), &json!(true), &json!(true))
    );
    assert_eq!(api.asked().len(), 4);
    assert!(api.asked()[1].what.contains("?wait="), "{:?}", api.asked()[1]);
}

#[tokio::test]
async fn a_wait_without_a_change_returns_what_is_known() {
    let api = changing(&[("Running", "10 %")]);
    let data = waited(&api, json!({"wait_seconds": 40})).await;
    assert_eq!((&data["job"]["status"], &data["changed"]), (&json!("Running"), &json!(false)));
}

#[tokio::test]
async fn a_change_that_the_caller_does_not_know_is_answered_at_once() {
    let api = changing(&[("Running", "")]);
    let data = waited(&api, json!({"wait_seconds": 40, "known_status": "Pending"})).await;
    assert_eq!((&data["job"]["status"], &data["changed"]), (&json!("Running"), &json!(true)));
    assert_eq!(api.asked().len(), 1);
}

#[tokio::test]
async fn an_ended_job_is_not_waited_for() {
    let api = changing(&[("Error", "")]);
    assert_eq!(waited(&api, json!({"wait_seconds": 40})).await["ended"], true);
    assert_eq!(api.asked().len(), 1);
}

#[tokio::test]
async fn a_wait_has_a_limit() {
    let error = FakeApi::new().tools().error("get_status", json!({"job_id": JOB, "wait_seconds": 51})).await;
    assert_eq!(error["code"], "invalid_arguments");
}
