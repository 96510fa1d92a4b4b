//! The page of figures.

use axum::http::StatusCode;
use serde_json::{Value, json};

use super::{
    answers,
    fake_api::{FakeApi, get, logged_in},
};

#[tokio::test]
async fn figures_have_links_to_the_jobs_behind_them() {
    let api = FakeApi::new();
    let console = api.console();
    let cookie = logged_in(&console).await;
    let address = "/ui/usage?window=30&group_label=team&cluster=dgx&owner=&evil=1";
    let page = get(&console, address, &[("cookie", &cookie)]).await;
    assert_eq!(page.status, StatusCode::OK, "{}", page.text);
    let text = page.text;
    for shown in
        ["75.0 %", "1 min 2 s", "1 h 0 min", "There are more groups", "2026-11-28", "value=\"5\"", "96.5"]
    {
        assert!(text.contains(shown), "{shown}: {text}");
    }
    // Both answers are the same here: the rule of most failed jobs comes first, and jobs without a rule are left out.
    let link = |rule: &str| {
        text.find(&format!("\"/ui/jobs?cluster=dgx&amp;status=Error&amp;rule={rule}&amp;sort=-finished_at\""))
    };
    assert!(link("speech").is_some() && link("speech") < link("vision"), "{text}");
    assert_eq!(text.matches("&amp;rule=").count(), 2, "{text}");
    assert!(
        text.contains(
            "/ui/usage?cluster=dgx&amp;label=team%3Avision&amp;window=30&amp;group_by=label%3Ateam"
        ),
        "{text}"
    );
    let asked: Vec<_> =
        api.asked().iter().map(|asked| asked.uri.clone()).filter(|uri| uri.starts_with("/stats")).collect();
    assert_eq!(asked.len(), 2, "{asked:?}");
    assert!(asked.iter().all(|uri| uri.starts_with("/stats?cluster=dgx&since=")), "{asked:?}");
    assert!(
        asked[0].ends_with("&group_by=label%3Ateam&bucket=day") && asked[1].ends_with("&group_by=rule"),
        "{asked:?}"
    );
}

#[tokio::test]
async fn the_course_of_the_figures_is_drawn_for_the_same_window_and_filters() {
    let api = FakeApi::new();
    let console = api.console();
    let cookie = logged_in(&console).await;
    let page =
        get(&console, "/ui/usage?window=30&group_by=owner&cluster=dgx&evil=1", &[("cookie", &cookie)]).await;
    let address = "/ui/usage/charts?cluster=dgx&window=30";
    let place =
        format!("id=\"charts-usage\" data-keep=\"\" data-chart=\"{}\"", address.replace('&', "&amp;"));
    assert!(page.text.contains(&place), "{}", page.text);
    api.forget();
    let answer = get(&console, address, &[("cookie", &cookie)]).await;
    let charts: Value = serde_json::from_str(&answer.text).unwrap();
    let titles = charts["charts"].as_array().unwrap().iter().map(|chart| chart["title"].as_str().unwrap());
    let wanted =
        ["Jobs that ended in each day", "GPU hours of each day", "Minutes that runs waited in the queue"];
    assert_eq!(titles.collect::<Vec<_>>(), wanted);
    assert_eq!(charts["charts"][2]["curves"][1]["y"], json!([60.0, 60.0]));
    let asked: Vec<_> = api.asked().into_iter().map(|asked| asked.uri).collect();
    assert_eq!(asked, ["/stats?cluster=dgx&since=2026-10-29T01%3A00%3A00Z&bucket=day"]);
    assert_ne!(get(&console, address, &[]).await.status, StatusCode::OK);
}

#[tokio::test]
async fn only_an_administrator_chooses_between_owners() {
    let api = FakeApi::new();
    let console = api.console();
    let cookie = logged_in(&console).await;
    assert!(get(&console, "/ui/usage", &[("cookie", &cookie)]).await.text.contains("group_by=owner"));
    api.answer("/me", StatusCode::OK, answers::me(&["read"]));
    let cookie = logged_in(&console).await;
    assert!(!get(&console, "/ui/usage", &[("cookie", &cookie)]).await.text.contains("group_by=owner"));
}

#[tokio::test]
async fn a_choice_that_the_api_refuses_is_explained() {
    let api = FakeApi::new();
    let console = api.console();
    let cookie = logged_in(&console).await;
    api.refuse("/stats", StatusCode::BAD_REQUEST, "invalid_parameter", "`group_by`: must be <b>.");
    let page = get(&console, "/ui/usage?group_by=colour", &[("cookie", &cookie)]).await;
    assert_eq!(page.status, StatusCode::BAD_REQUEST);
    assert!(page.text.contains("must be &lt;b&gt;"), "{}", page.text);
}
