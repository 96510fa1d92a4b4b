use std::time::Duration;

use api::{AuthMode, Limits};
use axum::{
    body::Body,
    http::{Method, Request},
};
use futures_util::StreamExt;
use serde_json::json;
use sqlx::{PgPool, postgres::PgPoolOptions};

use crate::support::TestApi;

#[tokio::test]
async fn malformed_json_names_its_line_and_column() {
    let api = TestApi::offline(AuthMode::Disabled);
    let problem = api.post_text("/jobs", "{\n  \"command\": tru\n}").await.problem(400, "malformed_json");
    assert!(problem["detail"].as_str().unwrap().starts_with("Line 2, column 16: "), "{problem}");
    let empty = api.post_text("/jobs", "").await.problem(400, "malformed_json");
    assert!(empty["detail"].as_str().unwrap().contains("empty"));
}

#[tokio::test]
async fn a_body_that_is_nested_too_deeply_is_refused_and_the_limit_named() {
    let api = TestApi::offline(AuthMode::Disabled);
    // The last is deeper than the parser itself goes.
    for levels in [65, 127, 1000] {
        for (open, shut) in [("[", "]"), (r#"{"a":"#, "}")] {
            let body = format!("{}1{}", open.repeat(levels), shut.repeat(levels));
            let problem = api.post_text("/jobs", &body).await.problem(422, "too_deep");
            assert!(problem["detail"].as_str().unwrap().contains("more than 64 levels"), "{problem}");
        }
    }
}

#[tokio::test]
async fn a_body_of_another_type_is_refused() {
    let api = TestApi::offline(AuthMode::Disabled);
    for kind in ["text/plain", "application/x-www-form-urlencoded", "application/jsonx"] {
        let request = Request::post("/jobs").header("content-type", kind).body(Body::from("{}")).unwrap();
        api.send(request).await.problem(415, "unsupported_media_type");
    }
    let none = Request::post("/jobs").body(Body::from("{}")).unwrap();
    api.send(none).await.problem(415, "unsupported_media_type");
}

#[tokio::test]
async fn a_body_that_is_too_large_is_refused() {
    let limits = Limits { body_bytes: 100, ..Limits::default() };
    let api = TestApi::offline_with(AuthMode::Disabled, limits);
    let body = json!({"command": "x".repeat(100)});
    let problem = api.post("/jobs", &body).await.problem(413, "body_too_large");
    assert!(problem["detail"].as_str().unwrap().contains("100 bytes"));
}

#[tokio::test]
async fn a_body_that_does_not_arrive_is_a_408() {
    let limits = Limits { body_timeout: Duration::from_millis(50), ..Limits::default() };
    let api = TestApi::offline_with(AuthMode::Disabled, limits);
    let first = futures_util::stream::iter([Ok::<_, std::io::Error>("{")]);
    let body = Body::from_stream(first.chain(futures_util::stream::pending()));
    let request = Request::post("/jobs").header("content-type", "application/json").body(body).unwrap();
    api.send(request).await.problem(408, "request_timeout");
}

#[tokio::test]
async fn a_head_that_is_too_large_is_refused_with_the_limit() {
    let limits = Limits { header_bytes: 1000, ..Limits::default() };
    let api = TestApi::offline_with(AuthMode::Disabled, limits);
    let long = api.get(&format!("/jobs?action={}", "x".repeat(1000))).await;
    assert!(long.problem(414, "uri_too_long")["detail"].as_str().unwrap().contains("the limit is 1000"));
    let large = |bytes: usize| {
        Request::get("/livez").header("x-large", "x".repeat(bytes)).body(Body::empty()).unwrap()
    };
    let problem = api.send(large(1000)).await.problem(431, "headers_too_large");
    assert!(problem["detail"].as_str().unwrap().contains("the limit is 1000"), "{problem}");
    assert_eq!(api.send(large(900)).await.status, 200);
}

#[tokio::test]
async fn a_request_that_takes_too_long_is_a_503() {
    // The database that is away is asked for longer, however busy the machine is.
    let pool = PgPoolOptions::new()
        .acquire_timeout(Duration::from_mins(2))
        .connect_lazy("postgres://nobody@127.0.0.1:1/none")
        .unwrap();
    let limits = Limits { request_timeout: Duration::from_millis(50), ..Limits::default() };
    let answer = TestApi::with(pool, AuthMode::Disabled, limits).get("/jobs").await;
    answer.problem(503, "timeout");
    assert_eq!(answer.header("retry-after"), "5");
}

#[tokio::test]
async fn a_panic_is_a_500_without_details() {
    let api = TestApi::offline(AuthMode::Disabled);
    api.loops.poison();
    let answer = api.get("/readyz").await;
    answer.problem(500, "internal");
    assert!(!answer.text().contains("Poison"), "{}", answer.text());
}

#[tokio::test]
async fn a_path_that_does_not_exist_is_a_problem_too() {
    let api = TestApi::offline(AuthMode::Tokens);
    for path in ["/nope", "/jobs/x/y/z", "/docs/nope.js", "/api/v2/jobs"] {
        assert_eq!(api.get(path).await.problem(404, "not_found")["instance"], path);
    }
}

#[tokio::test]
async fn a_method_that_the_path_does_not_know_is_answered_with_those_it_knows() {
    let api = TestApi::offline(AuthMode::Tokens);
    for (method, path, allow) in [
        (Method::DELETE, "/jobs", "GET,HEAD,POST"),
        (Method::PUT, "/jobs/0f8fad5b-d9cb-469f-a165-70867728950e", "DELETE,GET,HEAD"),
        (Method::GET, "/jobs/0f8fad5b-d9cb-469f-a165-70867728950e/cancel", "POST"),
        (Method::POST, "/livez", "GET,HEAD"),
    ] {
        let answer = api.send(Request::builder().method(method).uri(path).body(Body::empty()).unwrap()).await;
        answer.problem(405, "method_not_allowed");
        let mut allowed: Vec<_> = answer.header("allow").split(',').collect();
        allowed.sort_unstable();
        assert_eq!(allowed.join(","), allow, "{path}");
    }
}

#[tokio::test]
async fn a_text_that_is_not_a_uuid_is_not_a_job() {
    let api = TestApi::offline(AuthMode::Disabled);
    for path in ["/jobs/17", "/jobs/17/status", "/jobs/17/logs", "/jobs/%2e%2e%2fetc"] {
        let problem = api.get(path).await.problem(404, "job_not_found");
        assert!(problem["detail"].as_str().unwrap().contains("UUID"), "{problem}");
    }
    api.get("/jobs/%ff").await.problem(400, "bad_request");
}

#[tokio::test]
async fn an_unreachable_database_is_a_503_with_retry_after_and_no_details() {
    for auth in [AuthMode::Disabled, AuthMode::Tokens] {
        let api = TestApi::offline(auth);
        let answer = api.get_as("t", "/jobs").await;
        answer.problem(503, "database_unavailable");
        assert_eq!(answer.header("retry-after"), "5");
        for leak in ["127.0.0.1", "nobody", "pool", "sqlx", "select"] {
            assert!(!answer.text().contains(leak), "{}", answer.text());
        }
    }
}

#[sqlx::test(migrations = false)]
async fn a_failing_statement_reveals_no_details(pool: PgPool) {
    let answer = TestApi::new(pool).get("/jobs").await;
    answer.problem(500, "internal");
    for leak in ["relation", "select", "sql"] {
        assert!(!answer.text().contains(leak), "{}", answer.text());
    }
}

#[tokio::test]
async fn a_request_keeps_its_id_or_gets_one() {
    let api = TestApi::offline(AuthMode::Disabled);
    let ask = async |id: &str| {
        api.send(Request::get("/livez").header("x-request-id", id).body(Body::empty()).unwrap()).await
    };
    assert_eq!(ask("abc-1").await.header("x-request-id"), "abc-1");
    for useless in ["a b", &"x".repeat(129), ""] {
        assert_eq!(ask(useless).await.header("x-request-id").len(), 36, "{useless:?}");
    }
    assert_eq!(api.get("/livez").await.header("x-request-id").len(), 36);
}
