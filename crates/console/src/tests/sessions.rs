//! Log-in, log-out, and what a visitor without a session gets.

use axum::http::{Method, StatusCode};

use super::fake_api::{FakeApi, TOKEN, get, logged_in, send};

const SAME: (&str, &str) = ("sec-fetch-site", "same-origin");

#[tokio::test]
async fn a_visitor_without_a_session_is_led_to_the_log_in_and_back() {
    let api = FakeApi::new();
    let console = api.console();
    let page = get(&console, "/ui/jobs?status=Error", &[]).await;
    assert_eq!(
        (page.status, page.header("location")),
        (StatusCode::SEE_OTHER, "/ui/login?next=%2Fui%2Fjobs%3Fstatus%3DError")
    );
    let form = get(&console, page.header("location"), &[]).await;
    assert!(form.text.contains("action=\"/ui/login?next=%2Fui%2Fjobs%3Fstatus%3DError\""), "{}", form.text);
    let token = format!("token=+{TOKEN}+");
    let entered =
        send(&console, Method::POST, "/ui/login?next=%2Fui%2Fjobs%3Fstatus%3DError", &[SAME], Some(&token))
            .await;
    assert_eq!(
        (entered.status, entered.header("location")),
        (StatusCode::SEE_OTHER, "/ui/jobs?status=Error")
    );
    assert!(!entered.header("set-cookie").contains(TOKEN));
    assert!(
        api.asked().iter().all(|asked| asked.headers.contains_key("authorization")),
        "nothing is asked without a token"
    );
}

#[tokio::test]
async fn a_script_without_a_session_is_sent_to_the_log_in_and_a_stream_is_refused() {
    let console = FakeApi::new().console();
    let headers = [
        ("hx-request", "true"),
        ("hx-target", "live"),
        ("hx-current-url", "https://console.example/ui/jobs?status=Error#x"),
    ];
    let script = get(&console, "/ui/jobs", &headers).await;
    assert_eq!(script.status, StatusCode::UNAUTHORIZED);
    assert!(
        script.header("hx-redirect").starts_with("/ui/login?next=%2Fui%2Fjobs%3Fstatus%3DError"),
        "{:?}",
        script.headers
    );
    let stream = get(&console, "/ui/wake", &[("accept", "text/event-stream")]).await;
    assert_eq!((stream.status, stream.text.as_str()), (StatusCode::UNAUTHORIZED, ""));
}

#[tokio::test]
async fn a_click_on_another_site_keeps_the_session() {
    let console = FakeApi::new().console();
    // Browsers keep strict cookies back from such a request, and send them when the page asks again.
    let headers = [("sec-fetch-site", "cross-site"), ("sec-fetch-mode", "navigate")];
    let first = get(&console, "/ui/jobs", &headers).await;
    assert_eq!(first.status, StatusCode::OK);
    assert!(
        first.text.contains("http-equiv=\"refresh\" content=\"0\"")
            && !first.headers.contains_key("set-cookie"),
        "{}",
        first.text
    );
    let again =
        get(&console, "/ui/jobs", &[("sec-fetch-site", "same-origin"), ("sec-fetch-mode", "navigate")]).await;
    assert_eq!(again.status, StatusCode::SEE_OTHER);
}

#[tokio::test]
async fn a_token_that_the_api_refuses_begins_no_session() {
    let console = FakeApi::new().console();
    for (form, says) in [
        ("token=tsl_bad", "unknown, expired or revoked"),
        ("token=", "Enter a token"),
        ("", "Enter a token"),
        ("token=%0d%0ax", "unknown"),
    ] {
        let answer = send(&console, Method::POST, "/ui/login", &[SAME], Some(form)).await;
        assert_eq!(answer.status, StatusCode::UNAUTHORIZED, "{form}");
        assert!(
            answer.text.contains(says) && !answer.headers.contains_key("set-cookie"),
            "{form}: {}",
            answer.text
        );
        assert!(!answer.text.contains("tsl_bad"), "a token is not repeated");
    }
}

#[tokio::test]
async fn a_revoked_token_ends_its_session() {
    let api = FakeApi::new();
    let console = api.console();
    let cookie = logged_in(&console).await;
    assert_eq!(get(&console, "/ui/jobs", &[("cookie", &cookie)]).await.status, StatusCode::OK);
    api.refuse(
        "/jobs",
        StatusCode::UNAUTHORIZED,
        "unauthorized",
        "The token is unknown, expired or revoked.",
    );
    let page = get(&console, "/ui/jobs", &[("cookie", &cookie)]).await;
    assert_eq!(page.status, StatusCode::SEE_OTHER);
    assert!(page.header("set-cookie").contains("Max-Age=0"), "{:?}", page.headers);
}

#[tokio::test]
async fn a_log_out_ends_the_session() {
    let console = FakeApi::new().console();
    let cookie = logged_in(&console).await;
    let page = get(&console, "/ui/jobs", &[("cookie", &cookie)]).await;
    assert!(page.text.contains(">ann</bdi>") && page.text.contains("Log out"), "the page says who visits it");
    let out = send(&console, Method::POST, "/ui/logout", &[SAME, ("cookie", &cookie)], Some("")).await;
    assert_eq!((out.status, out.header("location")), (StatusCode::SEE_OTHER, "/ui/login"));
    let ended = out.header("set-cookie");
    assert!(ended.starts_with("tao_slurm_session=;") && ended.contains("Max-Age=0"), "{ended}");
    assert_eq!(
        get(&console, "/ui/logout", &[("cookie", &cookie)]).await.status,
        StatusCode::METHOD_NOT_ALLOWED
    );
}

#[tokio::test]
async fn a_service_without_authentication_needs_no_log_in() {
    let api = FakeApi::open();
    let console = api.console();
    let page = get(&console, "/ui/jobs", &[]).await;
    assert_eq!(page.status, StatusCode::OK);
    assert!(!page.text.contains("Log out"), "{}", page.text);
    assert!(api.asked().iter().all(|asked| !asked.headers.contains_key("authorization")));
    assert_eq!(get(&console, "/ui/login", &[]).await.header("location"), "/ui");
}
