//! Where the pages are, and what every answer has.

use axum::http::{Method, StatusCode};
use serde_json::json;

use super::{
    answers,
    fake_api::{FakeApi, JOB, get, logged_in, send},
};
use crate::addresses;

const HTML: (&str, &str) = ("accept", "text/html,application/xhtml+xml");

#[tokio::test]
async fn browsers_find_the_pages_and_programs_the_api() {
    let api = FakeApi::new();
    let console = api.console();
    let browser = get(&console, "/", &[HTML]).await;
    assert_eq!((browser.status, browser.header("location")), (StatusCode::SEE_OTHER, "/ui"));
    assert_eq!(get(&console, "/ui", &[HTML]).await.header("location"), "/ui/jobs");
    for accept in ["*/*", "application/json"] {
        assert!(get(&console, "/", &[("accept", accept)]).await.text.contains("tao-slurm"), "{accept}");
    }
}

#[tokio::test]
async fn all_other_requests_reach_the_api_unchanged() {
    let api = FakeApi::new();
    let headers = [("authorization", "Bearer tsl_good"), HTML, ("sec-fetch-site", "cross-site")];
    let answer = send(&api.console(), Method::POST, "/jobs/validate?live=true", &headers, Some("a=b")).await;
    let asked = api.asked().pop().unwrap();
    assert_eq!(
        (asked.method, asked.uri.as_str(), asked.body.as_str()),
        (Method::POST, "/jobs/validate?live=true", "a=b")
    );
    assert_eq!(asked.headers["accept"], HTML.1);
    assert!(!answer.headers.contains_key("content-security-policy"), "{:?}", answer.headers);
}

/// What is read but is no page.
const NO_PAGES: [&str; 10] = [
    "/ui/login",
    // There only with an issuer.
    "/ui/login/start",
    "/ui/login/callback",
    "/ui/assets/{hash}/{name}",
    "/ui/wake",
    "/ui/jobs/{id}/logs/follow",
    "/ui/jobs/{id}/logs/file",
    "/ui/jobs/{id}/charts",
    "/ui/jobs/{id}/usage",
    "/ui/usage/charts",
];

#[test]
fn the_tests_of_all_pages_know_all_pages() {
    let pages = answers::pages();
    let is_known = |address: &str| {
        let path = answers::filled(address).remove(0);
        pages.iter().any(|page| page.split('?').next() == Some(path.as_str()))
    };
    let reads =
        addresses().filter(|(method, path)| *method == Method::GET && !NO_PAGES.contains(&path.as_str()));
    let missing: Vec<_> = reads.filter(|(_, path)| !is_known(path)).collect();
    assert!(missing.is_empty(), "{missing:?} are not among `answers::pages`");
}

#[tokio::test]
async fn every_page_shows_what_the_api_answers() {
    let api = FakeApi::new();
    let console = api.console();
    let cookie = logged_in(&console).await;
    for page in answers::pages() {
        let answer = get(&console, &page, &[("cookie", &cookie)]).await;
        assert_eq!(answer.status, StatusCode::OK, "{page}: {}", answer.text);
        assert!(answer.text.starts_with("<!DOCTYPE html>") && answer.text.ends_with("</html>"), "{page}");
        assert_eq!(answer.text.matches("<h1").count(), 1, "{page}");
    }
    assert!(
        api.asked().iter().all(|asked| asked.method == Method::GET),
        "a page that is read changes nothing"
    );
}

#[tokio::test]
async fn a_page_is_renewed_without_its_frame() {
    let api = FakeApi::new();
    let console = api.console();
    let cookie = logged_in(&console).await;
    let headers = [("cookie", cookie.as_str()), ("hx-request", "true"), ("hx-target", "live")];
    let live = get(&console, "/ui/jobs", &headers).await.text;
    assert!(
        live.starts_with("<title>Jobs") && live.contains("id=\"live\"") && !live.contains("<html"),
        "{live}"
    );
    let restored = [headers.as_slice(), &[("hx-history-restore-request", "true")]].concat();
    assert!(
        get(&console, "/ui/jobs", &restored).await.text.starts_with("<!DOCTYPE"),
        "the browser goes back to a whole page"
    );
}

#[tokio::test]
async fn every_answer_of_the_pages_has_the_policy_and_is_not_cached() {
    let api = FakeApi::new();
    let console = api.console();
    let cookie = logged_in(&console).await;
    let page = get(&console, "/ui/jobs", &[("cookie", &cookie)]).await.text;
    let asset = page.split('"').find(|part| part.contains("/console.js")).unwrap().to_owned();
    let wake = format!("/ui/wake?job={JOB}");
    for path in [
        "/ui",
        "/ui/jobs",
        "/ui/login",
        "/ui/nowhere",
        "/ui/jobs/nothing",
        &wake,
        &asset,
        "/ui/assets/x/console.js",
    ] {
        let answer = get(&console, path, &[("cookie", &cookie)]).await;
        let policy = answer.header("content-security-policy");
        assert!(
            policy.starts_with("default-src 'none'; script-src 'self'; style-src 'self'"),
            "{path}: {policy}"
        );
        assert!(!policy.contains("unsafe") && policy.contains("frame-ancestors 'none'"), "{path}: {policy}");
        assert_eq!(
            (answer.header("x-content-type-options"), answer.header("referrer-policy")),
            ("nosniff", "same-origin"),
            "{path}"
        );
        let cache = answer.header("cache-control");
        if path == asset {
            assert_eq!(cache, "public, max-age=31536000, immutable");
        } else {
            assert!(cache.contains("no-store") || cache == "no-cache", "{path}: {cache}");
        }
    }
}

#[tokio::test]
async fn no_page_has_a_script_or_a_style_that_the_policy_forbids() {
    let api = FakeApi::new();
    let console = api.console();
    let cookie = logged_in(&console).await;
    for page in answers::pages() {
        let text = get(&console, &page, &[("cookie", &cookie)]).await.text;
        for forbidden in [
            " style=",
            "<style",
            "<script>",
            " onclick=",
            " onload=",
            "javascript:",
            "hx-on",
            " hx-vals=\"js",
            "http://",
            "https://cdn",
        ] {
            assert!(!text.contains(forbidden), "{page}: {forbidden}");
        }
    }
}

#[tokio::test]
async fn what_another_owner_has_is_not_there() {
    let api = FakeApi::new();
    let console = api.console();
    let cookie = logged_in(&console).await;
    let mut paths = 0;
    for (method, address) in
        addresses().filter(|(_, address)| address.contains("{id}") || address.contains("{name}"))
    {
        if address.starts_with("/ui/assets") {
            continue;
        }
        for path in answers::filled(&address) {
            // The ids of others, and another name.
            let path = path.replace("01997a5e-", "01997a5f-").replace("dgx", "other");
            let headers = [("cookie", cookie.as_str()), ("sec-fetch-site", "same-origin")];
            let form = (method == Method::POST).then_some("");
            let answer = send(&console, method.clone(), &path, &headers, form).await;
            assert_eq!(answer.status, StatusCode::NOT_FOUND, "{method} {path}");
            paths += 1;
        }
    }
    assert!(paths > 20, "{paths}");
    let other = "01997a5f-7c1b-7c05-9d1e-0c5f3a0b5a11";
    let headers = [("cookie", cookie.as_str()), ("sec-fetch-site", "same-origin")];
    let explode = format!("/ui/jobs/{other}/do/explode");
    let answer = send(&console, Method::POST, &explode, &headers, Some("")).await;
    assert_eq!(answer.status, StatusCode::NOT_FOUND);
    for path in ["/ui/jobs/..%2Fclusters", "/ui/jobs/x"] {
        assert_eq!(get(&console, path, &[("cookie", &cookie)]).await.status, StatusCode::NOT_FOUND, "{path}");
    }
}

#[tokio::test]
async fn a_visitor_who_may_only_read_sees_no_button_that_changes_something() {
    let api = FakeApi::new();
    api.answer("/me", StatusCode::OK, answers::me(&["read"]));
    let console = api.console();
    let cookie = logged_in(&console).await;
    for page in answers::pages().into_iter().filter(|page| !page.starts_with("/ui/new")) {
        let text = get(&console, &page, &[("cookie", &cookie)]).await.text;
        assert!(!text.contains("href=\"/ui/new\""), "{page}");
        let mut forms = text.split("<form").skip(1).filter(|form| !form.contains("/ui/logout"));
        assert!(!forms.any(|form| form.contains("method=\"post\"") && form.contains("<button")), "{page}");
    }
    assert!(api.asked().iter().all(|asked| asked.uri != "/tokens"), "only an administrator sees tokens");
}

#[tokio::test]
async fn a_problem_of_the_api_is_a_page_or_a_notice_with_its_reason() {
    let api = FakeApi::new();
    let console = api.console();
    let cookie = logged_in(&console).await;
    api.refuse(
        "/jobs",
        StatusCode::SERVICE_UNAVAILABLE,
        "database_unavailable",
        "The database <b>is away</b>.",
    );
    let page = get(&console, "/ui/jobs", &[("cookie", &cookie), ("x-request-id", "mine")]).await;
    assert_eq!(page.status, StatusCode::SERVICE_UNAVAILABLE);
    assert!(
        page.text.starts_with("<!DOCTYPE")
            && page.text.contains("The database &lt;b&gt;is away")
            && page.text.contains("r-1"),
        "{}",
        page.text
    );
    assert_eq!(api.asked().last().unwrap().headers["x-request-id"], "mine");
    let notice =
        get(&console, "/ui/jobs", &[("cookie", &cookie), ("hx-request", "true"), ("hx-target", "live")])
            .await;
    assert_eq!((notice.header("hx-retarget"), notice.header("hx-reswap")), ("#notice", "innerHTML"));
    assert!(notice.text.starts_with("<section class=\"problem\""), "{}", notice.text);
}

#[tokio::test]
async fn an_answer_that_lacks_a_field_is_a_page_too() {
    let api = FakeApi::new();
    let console = api.console();
    let cookie = logged_in(&console).await;
    api.answer("/jobs", StatusCode::OK, json!({"jobs": [{"id": "x"}]}));
    let page = get(&console, "/ui/jobs", &[("cookie", &cookie)]).await;
    assert_eq!(page.status, StatusCode::BAD_GATEWAY);
    assert!(page.text.contains("could not read"), "{}", page.text);
}

#[tokio::test]
async fn the_filters_of_the_address_are_those_of_the_api() {
    let api = FakeApi::new();
    let console = api.console();
    let cookie = logged_in(&console).await;
    get(&console, "/ui/jobs?status=Error&cluster=&label=a:b%26c&label=d:e&evil=1", &[("cookie", &cookie)])
        .await;
    let uri = api.asked().iter().rev().find(|asked| asked.uri.starts_with("/jobs")).unwrap().uri.clone();
    assert_eq!(
        uri,
        "/jobs?status=Error&label=a%3Ab%26c&label=d%3Ae&facets=status%2Ccluster%2Cowner%2Cpartition%2Crule&limit=50"
    );
}
