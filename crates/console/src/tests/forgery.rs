//! Requests that pages of other sites make in the name of a visitor.

use axum::http::{Method, StatusCode};
use test_case::test_case;

use super::{
    answers,
    fake_api::{FakeApi, JOB, logged_in, send},
};
use crate::addresses;

/// Every address that changes something.
fn changing() -> Vec<String> {
    let changing = addresses().filter(|(method, _)| *method != Method::GET);
    let paths: Vec<_> = changing.flat_map(|(_, path)| answers::filled(&path)).collect();
    assert!(paths.len() > 15, "{paths:?}");
    paths
}

#[test_case(&[("sec-fetch-site", "cross-site")]; "from another site")]
#[test_case(&[("sec-fetch-site", "same-site")]; "from another host of the site")]
#[test_case(&[("sec-fetch-site", "cross-site"), ("origin", "https://console.example")]; "with an origin that is not true")]
#[test_case(&[("origin", "https://evil.example")]; "of an old browser on another site")]
#[test_case(&[("origin", "https://console.example.evil.example")]; "from a host whose name begins alike")]
#[test_case(&[("origin", "https://console.example:8443")]; "from another port")]
#[test_case(&[("origin", "null")]; "from a sandboxed frame")]
#[test_case(&[("origin", "")]; "with an empty origin")]
#[test_case(&[("referer", "https://console.example/ui/jobs")]; "from nowhere")]
#[tokio::test]
async fn nothing_is_changed_for_a_page_of_another_site(headers: &[(&str, &str)]) {
    let api = FakeApi::new();
    let console = api.console();
    let cookie = logged_in(&console).await;
    let form = format!("action=cancel&job={JOB}&token=tsl_good&request={{}}&owner=ann&scopes=read");
    for path in changing() {
        for piece in [None, Some(("hx-request", "true"))] {
            let mut all = [headers, &[("cookie", cookie.as_str())]].concat();
            all.extend(piece);
            let answer = send(&console, Method::POST, &path, &all, Some(&form)).await;
            assert_eq!(answer.status, StatusCode::FORBIDDEN, "{path}");
            assert!(
                answer.text.contains("nothing was changed") && !answer.headers.contains_key("set-cookie"),
                "{path}: {}",
                answer.text
            );
        }
    }
    assert!(api.asked().iter().all(|asked| asked.method == Method::GET));
}

/// Without this, addresses that do nothing for anybody would make the test above succeed.
#[tokio::test]
async fn every_address_that_changes_something_does_it_for_a_page_of_ours() {
    let api = FakeApi::new();
    let console = api.console();
    let cookie = logged_in(&console).await;
    let form = format!("action=cancel&job={JOB}&token=tsl_good&request={{}}&owner=ann&scopes=read");
    for path in changing() {
        let headers = [("cookie", cookie.as_str()), ("sec-fetch-site", "same-origin")];
        let answer = send(&console, Method::POST, &path, &headers, Some(&form)).await;
        assert_ne!(answer.status, StatusCode::FORBIDDEN, "{path}");
        let is_changed = api.asked().iter().any(|asked| asked.method != Method::GET)
            || answer.headers.contains_key("set-cookie");
        assert!(is_changed, "{path}: {} {}", answer.status, answer.text);
        api.forget();
    }
}

#[tokio::test]
async fn a_page_of_ours_may_change_what_its_visitor_may() {
    let api = FakeApi::new();
    let console = api.console();
    let cookie = logged_in(&console).await;
    for origin in [("sec-fetch-site", "same-origin"), ("origin", "https://console.example")] {
        let path = format!("/ui/jobs/{JOB}/do/cancel");
        let answer = send(&console, Method::POST, &path, &[origin, ("cookie", &cookie)], Some("")).await;
        assert_eq!(
            (answer.status, answer.header("location")),
            (StatusCode::SEE_OTHER, format!("/ui/jobs/{JOB}").as_str())
        );
        let asked = api.asked().pop().unwrap();
        assert_eq!((asked.method, asked.uri), (Method::POST, format!("/jobs/{JOB}/cancel")));
    }
}

#[tokio::test]
async fn an_address_that_is_only_read_changes_nothing() {
    let api = FakeApi::new();
    let console = api.console();
    let cookie = logged_in(&console).await;
    for path in [
        format!("/ui/jobs/{JOB}/do/cancel"),
        "/ui/jobs/selected?action=cancel&job=x".into(),
        "/ui/clusters/dgx/preflight".into(),
    ] {
        let answer = send(&console, Method::GET, &path, &[("cookie", &cookie)], None).await;
        assert!(answer.status.is_client_error(), "{path}: {}", answer.status);
    }
    assert!(api.asked().iter().all(|asked| asked.method == Method::GET));
}
