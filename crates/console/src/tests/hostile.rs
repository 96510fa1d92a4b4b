//! Every text of the API may be hostile, on every page.

use axum::http::{Method, StatusCode};
use serde_json::Value;

use super::{
    answers,
    fake_api::{FakeApi, JOB, get, logged_in, send},
};

/// HTML, an attribute, an address, an override of the direction, an escape sequence, and a line of great length.
const HOSTILE: &str = "\"'><script>alert(1)</script><img src=x onerror=alert(1)>\u{202e}gpj\u{1b}[31m{{7*7}}";

/// The document with hostile texts in the place of all that are not ids, times or states.
fn poisoned(value: &Value, poison: &str) -> Value {
    match value {
        Value::String(text) if is_free(text) => Value::from(format!("{poison}{text}")),
        Value::Array(list) => list.iter().map(|value| poisoned(value, poison)).collect(),
        Value::Object(fields) => {
            let known =
                ["metrics", "parameters", "labels", "docker_env_vars", "nodes_by_state", "specs", "value"];
            let pair = |(name, value): (&String, &Value)| match value {
                // Maps whose keys are texts of others, too.
                Value::Object(map) if known.contains(&name.as_str()) => {
                    let map =
                        map.iter().map(|(key, value)| (format!("{poison}{key}"), poisoned(value, poison)));
                    (name.clone(), Value::Object(map.collect()))
                }
                value => (name.clone(), poisoned(value, poison)),
            };
            Value::Object(fields.iter().map(pair).collect())
        }
        other => other.clone(),
    }
}

fn is_free(text: &str) -> bool {
    !text.starts_with("2026-") && !text.starts_with("01997a5e-") && text != "0-2"
}

fn assert_harmless(page: &str, html: &str) {
    // What a form sends back is sent as it is.
    let mut parts = html.split(" value=\"");
    let first = parts.next().unwrap_or_default().to_owned();
    let html = &parts.fold(first, |shown, part| shown + part.split_once('"').map_or(part, |(_, rest)| rest));
    for raw in ["<script>alert", "<img src=x", "\u{202e}", "\u{1b}", "\"'>"] {
        assert!(
            !html.contains(raw),
            "{page} has {raw:?}: {}",
            &html[html.find(raw).unwrap().saturating_sub(200)..][..300]
        );
    }
}

#[tokio::test]
async fn hostile_texts_are_shown_as_texts_on_every_page() {
    let api = FakeApi::new();
    let console = api.console();
    let cookie = logged_in(&console).await;
    for (path, answer) in api.answers() {
        api.answer(&path, StatusCode::OK, poisoned(&answer, HOSTILE));
    }
    api.text(&format!("/jobs/{JOB}/script"), HOSTILE);
    api.text(&format!("/jobs/{JOB}/logs"), &format!("{HOSTILE}\n\u{1b}]0;title\u{7}{HOSTILE}"));
    for page in answers::pages() {
        let answer = get(&console, &page, &[("cookie", &cookie)]).await;
        assert_eq!(answer.status, StatusCode::OK, "{page}: {}", answer.text);
        assert_harmless(&page, &answer.text);
        assert!(
            page == "/ui/new" || answer.text.contains("&lt;script&gt;alert"),
            "{page} shows none of the hostile texts"
        );
    }
    let headers = [("cookie", cookie.as_str()), ("sec-fetch-site", "same-origin"), ("hx-request", "true")];
    for (path, form) in [
        ("/ui/new/check", "request={}".to_owned()),
        ("/ui/clusters/dgx/preflight", String::new()),
        ("/ui/jobs/selected", format!("action=retry&job={JOB}")),
    ] {
        let answer = send(&console, Method::POST, path, &headers, Some(&form)).await;
        assert_harmless(path, &answer.text);
    }
}

#[tokio::test]
async fn texts_without_end_do_not_make_pages_without_end() {
    let api = FakeApi::new();
    let console = api.console();
    let cookie = logged_in(&console).await;
    let long = "x".repeat(1 << 20);
    api.answer(
        "/jobs",
        StatusCode::OK,
        poisoned(&serde_json::json!({"jobs": [answers::job()], "next_page_token": null}), &long),
    );
    let page = get(&console, "/ui/jobs", &[("cookie", &cookie)]).await;
    assert!(page.text.len() < 200_000, "{}", page.text.len());
}

#[tokio::test]
async fn hostile_addresses_are_shown_as_texts() {
    let console = FakeApi::new().console();
    let cookie = logged_in(&console).await;
    let evil = "%22%27%3E%3Cscript%3Ealert(1)%3C/script%3E";
    for path in [
        format!("/ui/jobs?label={evil}&status={evil}"),
        format!("/ui/usage?label={evil}&group_by={evil}&window={evil}"),
        format!("/ui/usage?group_label={evil}&cluster={evil}"),
        format!("/ui/{evil}"),
        format!("/ui/clusters/{evil}"),
        format!("/ui/jobs/{JOB}/logs?role={evil}&task={evil}"),
        format!("/ui/login?next={evil}"),
        format!("/ui/jobs/{JOB}/timeline?class={evil}"),
    ] {
        let answer = get(&console, &path, &[("cookie", &cookie)]).await;
        assert_harmless(&path, &answer.text);
    }
}

#[tokio::test]
async fn a_log_as_it_is_is_no_page() {
    let api = FakeApi::new();
    api.text(&format!("/jobs/{JOB}/logs"), "<script>alert(1)</script>");
    let console = api.console();
    let cookie = logged_in(&console).await;
    let answer =
        get(&console, &format!("/ui/jobs/{JOB}/logs/file?offset=0&limit=10"), &[("cookie", &cookie)]).await;
    assert_eq!(
        (answer.header("content-type"), answer.header("x-content-type-options")),
        ("text/plain; charset=utf-8", "nosniff")
    );
    assert_eq!(answer.text, "<script>alert(1)</script>");
    let file = get(&console, &format!("/ui/jobs/{JOB}/logs/file"), &[("cookie", &cookie)]).await;
    assert_eq!(file.header("content-disposition"), format!("attachment; filename=\"{JOB}-out.log\""));
}
