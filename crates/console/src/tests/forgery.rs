//! Requests that pages of other sites make in the name of a visitor.

use axum::http::{Method, StatusCode};
use test_case::test_case;

use super::fake_api::{FakeApi, JOB, logged_in, send};

#[test_case(&[("sec-fetch-site", "cross-site")]; "from another site")]
#[test_case(&[("sec-fetch-site", "same-site")]; "from another host of the site")]
#[test_case(&[("origin", "https://evil.example")]; "of an old browser on another site")]
#[test_case(&[("origin", "null")]; "from a sandboxed frame")]
#[tokio::test]
async fn nothing_is_changed_for_a_page_of_another_site(headers: &[(&str, &str)]) {
    let api = FakeApi::new();
    let console = api.console();
    let cookie = logged_in(&console).await;
    let paths = [
        format!("/ui/jobs/{JOB}/do/cancel"),
        "/ui/jobs/selected".into(),
        "/ui/new".into(),
        "/ui/new/check".into(),
        "/ui/login".into(),
        "/ui/logout".into(),
        "/ui/clusters/dgx/preflight".into(),
        "/ui/access/tokens".into(),
    ];
    for path in paths {
        let all = [headers, &[("cookie", cookie.as_str())]].concat();
        let answer =
            send(&console, Method::POST, &path, &all, Some("action=cancel&job=x&token=tsl_good&request={}"))
                .await;
        assert_eq!(answer.status, StatusCode::FORBIDDEN, "{path}");
        assert!(
            answer.text.contains("another site") && !answer.headers.contains_key("set-cookie"),
            "{path}: {}",
            answer.text
        );
    }
    assert!(api.asked().iter().all(|asked| asked.method == Method::GET));
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
