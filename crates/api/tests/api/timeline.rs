use std::time::Duration;

use chrono::{DateTime, TimeDelta};
use persistence::CommandRun;
use remote::{CommandResult, Subject};
use serde_json::{Value, json};
use sqlx::PgPool;

use crate::support::TestApi;

/// A command for the job, this many seconds into the century.
fn run(id: &str, class: &'static str, seconds: i64) -> CommandRun {
    let subject = Subject::Attempt { job: id.parse().unwrap(), no: 1 };
    CommandRun {
        cluster: "dgx".parse().unwrap(),
        class,
        host: Some("login1:22".to_owned()),
        started_at: DateTime::UNIX_EPOCH + TimeDelta::seconds(seconds),
        duration: Duration::from_millis(17),
        result: CommandResult::Ok,
        exit_code: Some(0),
        bytes: Some(345),
        jobs: 2,
        subjects: vec![(subject, Some("submitted as 7".to_owned()))],
    }
}

#[sqlx::test(migrator = "persistence::MIGRATOR")]
async fn a_timeline_comes_by_pages_in_the_order_in_which_its_commands_began(pool: PgPool) {
    let api = TestApi::new(pool);
    let id = api.job(&json!({"command": "true"})).await;
    let path = format!("/jobs/{id}/timeline");
    let empty = api.get(&path).await.json();
    assert_eq!(empty, json!({"job_id": id, "entries": [], "next_page_token": null}));

    let runs: Vec<_> = (0..5).map(|number| run(&id, "read_logs", 10 - number)).collect();
    api.store.record_commands(&runs).await.unwrap();
    api.store.record_commands(&[run(&id, "submit", 1)]).await.unwrap();
    let first = api.get(&format!("{path}?limit=4")).await;
    let page = first.json();
    let submit = json!({
        "class": "submit", "attempt": 1, "host": "login1:22", "started_on": "1970-01-01T00:00:01Z", "duration_ms": 17,
        "result": "ok", "exit_code": 0, "bytes": 345, "jobs": 2, "outcome": "submitted as 7"
    });
    assert_eq!(page["entries"][0], submit);
    let began = |page: &Value| -> Vec<String> {
        let entries = page["entries"].as_array().unwrap();
        entries.iter().map(|entry| entry["started_on"].as_str().unwrap()[17..19].to_owned()).collect()
    };
    assert_eq!(began(&page), ["01", "06", "07", "08"]);
    let token = page["next_page_token"].as_str().unwrap();
    assert_eq!(first.header("link"), format!("<{path}?limit=4&page_token={token}>; rel=\"next\""));
    let rest = api.get(&format!("{path}?limit=4&page_token={token}")).await;
    assert_eq!(began(&rest.json()), ["09", "10"]);
    assert_eq!(rest.json()["next_page_token"], Value::Null);
    assert_eq!(began(&api.get(&format!("{path}?class=submit&class=cancel")).await.json()), ["01"]);

    for wrong in ["class=Teapot", "limit=0", "limit=201", "page_token=x", "attempt=1"] {
        assert_eq!(api.get(&format!("{path}?{wrong}")).await.status, 400, "{wrong}");
    }
}

#[sqlx::test(migrator = "persistence::MIGRATOR")]
async fn another_owners_timeline_does_not_exist(pool: PgPool) {
    let api = TestApi::guarded(pool);
    api.token("ann", "ann", "read write", None).await;
    api.token("bob", "bob", "read write", None).await;
    let body = json!({"command": "true"});
    let made = api.call_as("ann", axum::http::Method::POST, "/jobs", Some(&body)).await.json();
    let path = format!("/jobs/{}/timeline", made["id"].as_str().unwrap());
    assert_eq!(api.get_as("ann", &path).await.status, 200);
    api.get_as("bob", &path).await.problem(404, "job_not_found");
    api.get(&path).await.problem(401, "unauthorized");
}
