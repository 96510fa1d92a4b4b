use axum::{
    body::Body,
    http::{Method, Request},
};

use crate::support::{Answer, TestApi};

async fn preflight(api: &TestApi, origin: &str) -> Answer {
    let request = Request::builder()
        .method(Method::OPTIONS)
        .uri("/jobs")
        .header("origin", origin)
        .header("access-control-request-method", "POST")
        .header("access-control-request-headers", "authorization,content-type,idempotency-key");
    api.send(request.body(Body::empty()).unwrap()).await
}

#[tokio::test]
async fn no_page_of_another_origin_may_call_unless_it_is_named() {
    let shut = preflight(&TestApi::open_to(&[]), "https://a.example.org").await;
    shut.problem(405, "method_not_allowed");
    assert!(!shut.headers.contains_key("access-control-allow-origin"));

    let api = TestApi::open_to(&["https://a.example.org"]);
    let named = preflight(&api, "https://a.example.org").await;
    assert_eq!(named.status, 200);
    assert_eq!(named.header("access-control-allow-origin"), "https://a.example.org");
    assert!(named.header("access-control-allow-headers").contains("idempotency-key"));
    let other = preflight(&api, "https://b.example.org").await;
    assert!(!other.headers.contains_key("access-control-allow-origin"));
}

#[tokio::test]
async fn a_page_may_read_an_error_too() {
    let api = TestApi::open_to(&["*"]);
    let request =
        Request::get("/nope").header("origin", "https://a.example.org").body(Body::empty()).unwrap();
    let answer = api.send(request).await;
    answer.problem(404, "not_found");
    assert_eq!(answer.header("access-control-allow-origin"), "*");
    assert!(answer.header("access-control-expose-headers").contains("x-request-id"));
}
