//! Tools that read.

use axum::{
    http::StatusCode,
    response::{IntoResponse, Response},
};
use serde_json::{Value, json};

use super::{
    answers::{JOB, changed, clusters, job, search, status, usage},
    fake_api::{Asked, FakeApi},
};

fn with_log(text: &'static str, size: &'static str) -> FakeApi {
    let api = FakeApi::new();
    api.with(&format!("GET /jobs/{JOB}/logs"), move |_: &Asked| -> Response {
        ([("x-log-size", size), ("x-log-attempt", "2"), ("x-log-next-offset", "90")], text).into_response()
    });
    api
}

fn summary(result: &Value) -> &str {
    result["content"][0]["text"].as_str().unwrap()
}

#[tokio::test]
async fn a_cause_comes_with_what_the_job_used_and_what_would_help() {
    let data = FakeApi::new().tools().data("explain_job", json!({"job_id": JOB})).await;
    assert_eq!(data["diagnosis"]["category"], "host_memory");
    assert_eq!(data["diagnosis"]["first"]["offset"], 10);
    assert_eq!(
        (&data["used"]["most_memory_mib"], &data["asked_for"]["memory"]["per_node"]),
        (&json!(1024), &json!("1G"))
    );
    assert_eq!(data["suggested_changes"], json!({"resources": {"memory": {"per_node": "2G"}}}));
}

#[tokio::test]
async fn a_job_that_waits_says_why() {
    let api = FakeApi::new();
    let pending = json!({
        "reason": "QOSMaxGRESPerUser", "meaning": "m", "held_by": "qos", "limit": null, "advice": "a", "needs_action": false,
        "estimated_start_on": null
    });
    let waits = changed(status(), &json!({"status": "Pending", "pending": pending}));
    api.answer(&format!("GET /jobs/{JOB}/status"), StatusCode::OK, waits);
    api.refuse(
        &format!("GET /jobs/{JOB}/diagnosis"),
        StatusCode::NOT_FOUND,
        "not_failed",
        "It has not failed.",
    );
    // Of an array it needs a task.
    api.refuse(&format!("GET /jobs/{JOB}/usage"), StatusCode::BAD_REQUEST, "invalid_parameter", "task");
    let data = api.tools().data("explain_job", json!({"job_id": JOB})).await;
    assert_eq!(
        (&data["job"]["pending"]["held_by"], &data["diagnosis"], &data["used"]),
        (&json!("qos"), &Value::Null, &Value::Null)
    );
    assert!(data["advice"].as_str().unwrap().contains("needs_action"));
}

#[tokio::test]
async fn the_end_of_a_log_is_told_apart_from_the_whole() {
    let whole = with_log("one\ntwo\n", "8").tools().call("get_logs", json!({"job_id": JOB})).await;
    let data = &whole["structuredContent"];
    assert_eq!(
        (&data["text"], &data["complete"], &data["attempt"]),
        (&json!("one\ntwo\n"), &json!(true), &json!(2))
    );
    let api = with_log("two\n", "1000000");
    let end = api.tools().call("get_logs", json!({"job_id": JOB, "tail": 1, "stream": "err"})).await;
    assert_eq!(
        (&end["structuredContent"]["complete"], &end["structuredContent"]["size"]),
        (&json!(false), &json!(1_000_000))
    );
    assert!(summary(&end).contains("search"), "{end}");
    assert_eq!(
        api.asked()[0].what,
        format!("GET /jobs/{JOB}/logs?stream=err&tail=1&limit=12288&rewrites=last")
    );
    let empty = with_log("", "0").tools().call("get_logs", json!({"job_id": JOB})).await;
    assert!(summary(&empty).contains("no proof"), "{empty}");
}

#[tokio::test]
async fn a_part_of_a_log_leads_to_the_next() {
    let api = with_log("two\n", "100");
    let data = api.tools().data("get_logs", json!({"job_id": JOB, "offset": 86, "stream": "err"})).await;
    assert_eq!((&data["next_offset"], &data["complete"]), (&json!(90), &json!(false)));
    assert!(api.asked()[0].what.contains("stream=err&offset=86&limit=12288"), "{:?}", api.asked());
}

#[tokio::test]
async fn a_search_that_was_not_finished_is_no_proof() {
    let api = FakeApi::new();
    let tools = api.tools();
    let arguments =
        json!({"job_id": JOB, "search": "out of (memory|time)", "regex": true, "ignore_case": true});
    let data = tools.data("get_logs", arguments).await;
    assert_eq!((&data["complete"], &data["hits"]["items"][0]["offset"]), (&json!(false), &json!(10)));
    assert!(
        api.asked()[0].what.ends_with("q=out+of+%28memory%7Ctime%29&limit=20&regex=true&ignore_case=true"),
        "{:?}",
        api.asked()
    );
    let none = changed(search(), &json!({"hits": []}));
    api.answer(&format!("GET /jobs/{JOB}/logs/search"), StatusCode::OK, none);
    let result = tools.call("get_logs", json!({"job_id": JOB, "search": "x"})).await;
    assert!(summary(&result).contains("no proof"), "{result}");
    for mixed in [
        json!({"search": "x", "tail": 5}),
        json!({"regex": true}),
        json!({"tail": 5, "offset": 1}),
        json!({"tail": 0}),
    ] {
        let error = tools.error("get_logs", changed(json!({"job_id": JOB}), &mixed)).await;
        assert_eq!(error["code"], "invalid_arguments", "{mixed}");
    }
}

#[tokio::test]
async fn a_list_has_filters_and_pages() {
    let api = FakeApi::new();
    let tools = api.tools();
    let arguments =
        json!({"status": ["Error", "Running"], "label": ["team:a&b"], "limit": 2, "page_token": "t"});
    let result = tools.call("list_jobs", arguments).await;
    assert_eq!(result["structuredContent"]["next_page_token"], "next");
    assert!(summary(&result).contains("page_token"), "{result}");
    let asked = "GET /jobs?limit=2&status=Error&status=Running&label=team%3Aa%26b&page_token=t";
    assert_eq!(api.asked()[0].what, asked);
    api.answer("GET /jobs", StatusCode::OK, json!({"jobs": [], "next_page_token": null}));
    assert!(summary(&tools.call("list_jobs", json!({})).await).contains("no proof"));
}

#[tokio::test]
async fn partitions_of_all_clusters_or_of_one() {
    let api = FakeApi::new();
    let names = ["dgx", "b", "c", "d", "e", "f"];
    api.answer("GET /clusters", StatusCode::OK, clusters(&names));
    let unread = json!({"fetched_on": null, "stale": false, "error": null, "partitions": []});
    for name in &names[1..] {
        api.answer(&format!("GET /clusters/{name}/partitions"), StatusCode::OK, unread.clone());
    }
    let tools = api.tools();
    let result = tools.call("list_partitions", json!({})).await;
    let data = &result["structuredContent"];
    assert_eq!(data["clusters"]["items"].as_array().unwrap().len(), 4);
    assert_eq!(data["not_shown"]["items"], json!(["e", "f"]));
    assert_eq!(data["clusters"]["items"][0]["partitions"]["items"][0]["nodes_by_state"], json!({"idle": 4}));
    assert!(summary(&result).contains("no proof"), "{result}");
    let one = tools.data("list_partitions", json!({"cluster": "f"})).await;
    assert_eq!((&one["clusters"]["items"][0]["name"], &one["not_shown"]["items"]), (&json!("f"), &json!([])));
    api.refuse(
        "GET /clusters/x/partitions",
        StatusCode::NOT_FOUND,
        "cluster_not_found",
        "The clusters are dgx.",
    );
    assert_eq!(tools.error("list_partitions", json!({"cluster": "x"})).await["code"], "cluster_not_found");
}

#[tokio::test]
async fn a_preflight_shows_what_failed_first() {
    let data = FakeApi::new().tools().data("preflight", json!({})).await;
    assert_eq!((&data["outcome"], &data["checks"]["items"][0]["id"]), (&json!("fail"), &json!("sbatch")));
}

#[tokio::test]
async fn an_addition_that_is_missing_does_not_hide_the_rest() {
    let api = FakeApi::new();
    let none = changed(usage(), &json!({"accounted": {"most_memory_mib": null}}));
    api.answer(&format!("GET /jobs/{JOB}/usage"), StatusCode::OK, none);
    api.answer(&format!("GET /jobs/{JOB}"), StatusCode::OK, job(status()));
    let data = api.tools().data("explain_job", json!({"job_id": JOB})).await;
    assert_eq!(data["used"]["most_memory_mib"], Value::Null);
}
