use std::collections::BTreeSet;

use axum::{
    body::Body,
    http::{Method, Request},
};

use crate::{
    document::operations,
    support::{Answer, TestApi},
};

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

/// A header of the document that a page may not send, or not read, is of no use to it.
#[tokio::test]
async fn a_page_may_send_and_read_every_header_of_the_document() {
    let (mut sent, mut read) = (BTreeSet::new(), BTreeSet::new());
    for (_, _, operation) in operations() {
        for parameter in operation["parameters"].as_array().into_iter().flatten() {
            if parameter["in"] == "header" {
                sent.insert(parameter["name"].as_str().unwrap().to_lowercase());
            }
        }
        for response in operation["responses"].as_object().unwrap().values() {
            read.extend(
                response["headers"].as_object().into_iter().flatten().map(|(name, _)| name.to_lowercase()),
            );
        }
    }
    // What is for proxies and browsers, who do not ask.
    for name in ["vary", "x-accel-buffering", "x-content-type-options"] {
        assert!(read.remove(name), "{name}");
    }
    // What any page may read (Fetch, "CORS-safelisted response-header name").
    assert!(read.remove("cache-control"));
    let api = TestApi::open_to(&["https://a.example.org"]);
    let allowed = preflight(&api, "https://a.example.org").await;
    let request =
        Request::get("/livez").header("origin", "https://a.example.org").body(Body::empty()).unwrap();
    let shown = api.send(request).await;
    let named = |text: &str| text.split(',').map(|name| name.trim().to_lowercase()).collect::<BTreeSet<_>>();
    let allowed = named(allowed.header("access-control-allow-headers"));
    assert_eq!(sent.difference(&allowed).collect::<Vec<_>>(), Vec::<&String>::new());
    let shown = named(shown.header("access-control-expose-headers"));
    assert_eq!(read.difference(&shown).collect::<Vec<_>>(), Vec::<&String>::new());
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
