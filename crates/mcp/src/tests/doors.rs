//! Who gets in.

use axum::{
    body::{Body, to_bytes},
    http::{Method, Request, StatusCode},
};
use serde_json::json;
use tower::ServiceExt;

use super::{answers::JOB, fake_api::FakeApi};

const JSON: [(&str, &str); 2] =
    [("content-type", "application/json"), ("accept", "application/json, text/event-stream")];

#[tokio::test]
async fn without_a_token_nothing_is_parsed_and_the_answer_says_how_to_get_in() {
    let tools = FakeApi::new().tools();
    for token in [None, Some("Bearer tsl_bad"), Some("Basic dXNlcjp4")] {
        let mut headers = JSON.to_vec();
        headers.extend(token.map(|token| ("authorization", token)));
        for method in [Method::POST, Method::GET, Method::DELETE] {
            let got = tools.send(method, &headers, "{ this is no message").await;
            assert_eq!(got.status, StatusCode::UNAUTHORIZED, "{token:?}: {}", got.text);
            assert_eq!(got.headers["www-authenticate"], "Bearer");
            assert_eq!(got.json()["code"], "unauthorized");
        }
    }
    let headers = [JSON.to_vec(), vec![("authorization", "Bearer tsl_good")]].concat();
    let got = tools.send(Method::POST, &headers, "{ this is no message").await;
    assert!(got.status.is_client_error() && got.status != StatusCode::UNAUTHORIZED, "{}", got.status);
}

#[tokio::test]
async fn pages_in_a_browser_get_nothing_even_with_a_token() {
    let api = FakeApi::new();
    let tools = api.tools();
    for origin in ["https://evil.example", "http://tao.example", "http://localhost:8080", "null"] {
        let headers =
            [JSON.to_vec(), vec![("authorization", "Bearer tsl_good"), ("origin", origin)]].concat();
        let message = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/list"}).to_string();
        let got = tools.send(Method::POST, &headers, message).await;
        assert_eq!(
            (got.status, got.json()["code"].as_str()),
            (StatusCode::FORBIDDEN, Some("forbidden")),
            "{origin}"
        );
    }
}

#[tokio::test]
async fn a_message_has_a_limit() {
    let tools = FakeApi::new().tools();
    let headers = [JSON.to_vec(), vec![("authorization", "Bearer tsl_good")]].concat();
    let large = vec![b' '; 1024 * 1024 + 1];
    let got = tools.send(Method::POST, &headers, large.clone()).await;
    assert_eq!(
        (got.status, got.json()["code"].as_str()),
        (StatusCode::PAYLOAD_TOO_LARGE, Some("body_too_large"))
    );
    // Without a size.
    let parts = large.chunks(1000).map(|part| Ok::<_, std::io::Error>(part.to_vec())).collect::<Vec<_>>();
    let stream = Body::from_stream(futures_util::stream::iter(parts));
    assert_eq!(tools.send(Method::POST, &headers, stream).await.status, StatusCode::PAYLOAD_TOO_LARGE);
}

#[tokio::test(start_paused = true)]
async fn bodies_that_do_not_arrive_make_others_wait_and_not_for_long() {
    let tools = FakeApi::new().tools();
    let headers = [JSON.to_vec(), vec![("authorization", "Bearer tsl_good")]].concat();
    let never = || Body::from_stream(futures_util::stream::pending::<Result<Vec<u8>, std::io::Error>>());
    let slow = (0..32).map(|_| tools.send(Method::POST, &headers, never()));
    let slow = futures_util::future::join_all(slow);
    let late = async {
        tokio::time::sleep(std::time::Duration::from_secs(1)).await;
        tools.send(Method::POST, &headers, never()).await
    };
    let (slow, late) = futures_util::future::join(slow, late).await;
    assert!(slow.iter().all(|got| got.status == StatusCode::REQUEST_TIMEOUT), "{:?}", slow[0].status);
    assert_eq!(
        (late.status, late.json()["code"].as_str()),
        (StatusCode::SERVICE_UNAVAILABLE, Some("buffers_busy"))
    );
    assert!(late.headers.contains_key("retry-after"));
    assert_eq!(tools.ask("tools/list", json!({})).await["tools"].as_array().unwrap().len(), 9);
}

#[tokio::test]
async fn a_refusal_of_the_caller_is_the_answer() {
    let api = FakeApi::new();
    api.refuse("GET /me", StatusCode::TOO_MANY_REQUESTS, "too_many_requests", "Wait.");
    let got = api.tools().message(&json!({"jsonrpc": "2.0", "id": 1, "method": "tools/list"})).await;
    assert_eq!(
        (got.status, got.json()["code"].as_str()),
        (StatusCode::TOO_MANY_REQUESTS, Some("too_many_requests"))
    );
}

#[tokio::test]
async fn a_call_has_the_callers_token_and_request_id_and_nothing_else_of_it() {
    let api = FakeApi::new();
    let message = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "get_status", "arguments": {"job_id": JOB}}});
    let own =
        [("authorization", "Bearer tsl_good"), ("x-request-id", "r-7"), ("cookie", "a=b"), ("if-match", "x")];
    let got =
        api.tools().send(Method::POST, &[JSON.to_vec(), own.to_vec()].concat(), message.to_string()).await;
    assert_eq!(got.status, StatusCode::OK, "{}", got.text);
    let asked = api.asked();
    let headers = &asked[0].headers;
    assert_eq!(
        (&headers["authorization"], &headers["x-request-id"]),
        (&"Bearer tsl_good".parse().unwrap(), &"r-7".parse().unwrap())
    );
    assert!(!headers.contains_key("cookie") && !headers.contains_key("if-match"), "{headers:?}");
    assert_eq!(got.headers["cache-control"], "no-store");
}

#[tokio::test]
async fn other_addresses_are_those_of_the_rest() {
    let tools = FakeApi::new().tools();
    for path in ["/", "/mcp/x", "/jobs"] {
        let request = Request::builder().uri(path).body(Body::empty()).unwrap();
        let answer = tools.router.clone().oneshot(request).await.unwrap();
        assert_eq!(&to_bytes(answer.into_body(), 100).await.unwrap()[..], b"the rest", "{path}");
    }
}
