//! Charts and the search in logs.

use axum::http::StatusCode;
use serde_json::{Value, json};

use super::{
    answers,
    fake_api::{FakeApi, JOB, Shown, get, logged_in},
};

async fn shown(api: &FakeApi, path: &str) -> Shown {
    let console = api.console();
    let cookie = logged_in(&console).await;
    get(&console, &format!("/ui/jobs/{JOB}{path}"), &[("cookie", &cookie)]).await
}

/// The queries with which the API was asked for this.
fn asked(api: &FakeApi, path: &str) -> Vec<String> {
    let all = api.asked().into_iter().filter_map(|asked| {
        let (its, query) = asked.uri.split_once('?')?;
        (its == format!("/jobs/{JOB}{path}")).then(|| query.to_owned())
    });
    all.collect()
}

#[tokio::test]
async fn hits_are_links_to_their_places_and_the_log_is_not_read_for_them() {
    let api = FakeApi::new();
    let page = shown(&api, "/logs?stream=err&task=1&q=a%26b&regex=true").await;
    assert_eq!(asked(&api, "/logs/search"), ["task=1&stream=err&q=a%26b&regex=true&from=0"], "{}", page.text);
    assert_eq!(asked(&api, "/logs"), Vec::<String>::new());
    let to = |rest: &str| {
        let address = format!("/ui/jobs/{JOB}/logs?task=1&stream=err&attempt=2&q=a%26b&regex=true&{rest}");
        address.replace('&', "&amp;")
    };
    for link in [to("at=70#hit"), to("from=71")] {
        assert!(page.text.contains(&format!("href=\"{link}\"")), "{link}: {}", page.text);
    }
    assert!(page.text.contains("<mark><bdi>error</bdi></mark>"), "{}", page.text);
    assert!(
        page.text.contains("value=\"a&amp;b\"")
            && page.text.contains("name=\"regex\" value=\"true\" checked")
    );
}

#[tokio::test]
async fn a_hit_is_shown_marked_among_the_lines_around_it() {
    let api = FakeApi::new();
    let page = shown(&api, "/logs?q=two&at=5").await;
    assert!(page.text.contains("<span class=\"line hit\" id=\"hit\">two"), "{}", page.text);
    assert!(page.text.contains("id=\"b0\">one"), "{}", page.text);
    assert_eq!(asked(&api, "/logs"), ["stream=out&task=0&offset=0&limit=131072"]);
}

#[tokio::test]
async fn of_the_end_of_a_log_no_more_bytes_are_read_than_a_window_has() {
    let api = FakeApi::new();
    shown(&api, "/logs?stream=err").await;
    assert_eq!(asked(&api, "/logs"), ["stream=err&task=0&tail=4000&limit=131073"]);
}

#[tokio::test]
async fn a_pattern_that_is_none_is_refused_beside_the_field() {
    let api = FakeApi::new();
    api.refuse(
        &format!("/jobs/{JOB}/logs/search"),
        StatusCode::BAD_REQUEST,
        "invalid_parameter",
        "`q`: <no pattern>.",
    );
    let page = shown(&api, "/logs?q=(&regex=true").await;
    assert_eq!(page.status, StatusCode::OK);
    assert!(
        page.text.contains("`q`: &lt;no pattern&gt;.") && page.text.contains("id=\"log-q\""),
        "{}",
        page.text
    );
}

#[tokio::test]
async fn a_job_that_has_reported_metrics_has_charts_of_them() {
    let api = FakeApi::new();
    let mut job = answers::job();
    job["array"] = Value::Null;
    api.answer(&format!("/jobs/{JOB}"), StatusCode::OK, job.clone());
    let page = shown(&api, "").await;
    let place = format!("id=\"charts-metrics\" data-keep=\"\" data-chart=\"/ui/jobs/{JOB}/charts\"");
    assert!(page.text.contains(&place), "{}", page.text);
    assert!(!page.text.contains("style="));
    (job["progress"], job["attempt"]) = (json!({"metrics": {}}), json!(1));
    api.answer(&format!("/jobs/{JOB}"), StatusCode::OK, job);
    assert!(!shown(&api, "").await.text.contains("charts-metrics"));
}

#[tokio::test]
async fn a_job_that_has_measured_its_use_shows_it() {
    let api = FakeApi::new();
    let mut job = answers::job();
    job["array"] = Value::Null;
    api.answer(&format!("/jobs/{JOB}"), StatusCode::OK, job.clone());
    let page = shown(&api, "").await;
    assert!(page.text.contains("1 GPU, 40 % used on average."), "{}", page.text);
    let account = "Slurm accounts for 2 runs: 1 h 2 min, 8.3 GPU hours, 12 % of its processors\u{2019} time used, at most 60.3 GiB in one task.";
    assert!(page.text.contains(account), "{}", page.text);
    assert!(page.text.contains(&format!("data-chart=\"/ui/jobs/{JOB}/usage\"")), "{}", page.text);
    assert!(page.text.contains("2048 of 81920 MiB"), "{}", page.text);
    let answer = shown(&api, "/usage?task=1&secret=x").await;
    let charts: Value = serde_json::from_str(&answer.text).unwrap();
    assert_eq!(charts["charts"][0]["curves"][0]["y"], json!([30.0, 50.5]));
    assert_eq!(asked(&api, "/usage"), ["task=1"]);
    job["started_on"] = Value::Null;
    api.answer(&format!("/jobs/{JOB}"), StatusCode::OK, job);
    assert!(!shown(&api, "").await.text.contains("charts-usage"), "it has not begun");
}

#[tokio::test]
async fn charts_are_data_of_the_api_with_the_visitors_rights() {
    let api = FakeApi::new();
    let answer = shown(&api, "/charts?task=1&secret=x").await;
    assert_eq!(answer.header("content-type"), "application/json");
    let charts: Value = serde_json::from_str(&answer.text).unwrap();
    let chart = json!({"title": "loss", "axis": "epoch", "note": "1 values were null, NaN or infinite.",
                       "curves": [{"name": "loss", "kind": null, "x": [1.0, 2.0], "y": [0.5, 0.25]}]});
    assert_eq!(charts["charts"], json!([chart]));
    assert!(charts["notes"][0].as_str().unwrap().contains("missing"));
    assert_eq!(asked(&api, "/metrics"), ["task=1"]);
    let anonymous = get(&api.console(), &format!("/ui/jobs/{JOB}/charts"), &[]).await;
    assert_ne!(anonymous.status, StatusCode::OK);
}
