//! The results of jobs.

use domain::{Phase, Run, Status, TaskResult};
use serde_json::{Value, json};
use sqlx::PgPool;

use crate::support::TestApi;

fn with_results() -> Value {
    json!({"command": "true", "results": [
        {"name": "accuracy", "json_file": "eval/scores.json", "required": true},
        {"name": "best", "regex": "best=(.+)", "log": "err"},
        {"name": "summary", "json_line": "RESULT:"},
    ]})
}

/// Ends the job with these values of its results; `None` for one that was not found.
async fn end_with(api: &TestApi, id: &str, status: Status, values: [Option<Value>; 3]) {
    api.submit(id, 7, "node01").await;
    api.see(id, |job| {
        job.run.is_over = true;
        job.phase = Phase::Finishing;
    })
    .await;
    let now = domain::Clock::now(&*api.clock);
    let results: Vec<Value> = ["accuracy", "best", "summary"]
        .iter()
        .zip(values)
        .map(|(name, value)| match value {
            Some(value) => json!({"name": name, "value": value}),
            None => json!({"name": name, "problem": "it is not there"}),
        })
        .collect();
    let results: Vec<TaskResult> = serde_json::from_value(results.into()).unwrap();
    api.step(id, None, |job| {
        job.run = Run { is_over: true, results: Some(results), ..Run::default() };
        job.status = status;
        job.phase = Phase::Ended;
        job.finished_at = Some(now);
    })
    .await;
}

#[sqlx::test(migrator = "persistence::MIGRATOR")]
async fn results_are_told_with_what_is_missing(pool: PgPool) {
    let api = TestApi::new(pool);
    let id = api.job(&with_results()).await;
    let path = format!("/jobs/{id}/results");
    let row = |name, value: Value, problem: Option<&str>| json!({"task": 0, "name": name, "value": value, "problem": problem});
    let unended =
        ["accuracy", "best", "summary"].map(|name| row(name, Value::Null, Some("the task has not ended")));
    assert_eq!(api.get(&path).await.json(), json!(unended));
    assert_eq!(api.get(&format!("{path}?format=csv")).await.text(), "task,accuracy,best,summary\r\n0,,,\r\n");

    let summary = json!({"loss": "NaN", "text": "a\0b", "large": 1e300});
    end_with(&api, &id, Status::Done, [Some(json!(0.1)), None, Some(summary.clone())]).await;
    let told = json!([
        row("accuracy", json!(0.1), None),
        row("best", Value::Null, Some("it is not there")),
        row("summary", summary, None),
    ]);
    assert_eq!(api.get(&format!("{path}?format=json")).await.json(), told);
    let table = api.get(&format!("{path}?format=csv")).await;
    assert_eq!(table.header("content-type"), "text/csv; charset=utf-8; header=present");
    let object = r#""{""loss"":""NaN"",""text"":""a\u0000b"",""large"":1e+300}""#;
    assert_eq!(table.text(), format!("task,accuracy,best,summary\r\n0,0.1,,{object}\r\n"));
    api.get(&format!("{path}?format=xml")).await.problem(400, "invalid_parameter");
}

#[sqlx::test(migrator = "persistence::MIGRATOR")]
async fn a_formula_is_a_text_in_the_table(pool: PgPool) {
    let api = TestApi::new(pool);
    let id = api.job(&with_results()).await;
    end_with(&api, &id, Status::Done, [Some(json!("=1+1")), Some(json!("-0.5")), Some(json!("a,b"))]).await;
    let table = api.get(&format!("/jobs/{id}/results?format=csv")).await.text();
    assert_eq!(table, "task,accuracy,best,summary\r\n0,'=1+1,-0.5,\"a,b\"\r\n");
}

#[sqlx::test(migrator = "persistence::MIGRATOR")]
async fn a_table_has_the_parameters_of_each_task(pool: PgPool) {
    let api = TestApi::new(pool);
    let mut body = with_results();
    body["array"] = json!({"values": [{"LR": 0.1, "OPTIMIZER": "=adam"}, {"LR": 1}, {"SEED": 7}]});
    let id = api.job(&body).await;
    let table = api.get(&format!("/jobs/{id}/results?format=csv")).await.text();
    let rows: Vec<_> = table.lines().collect();
    assert_eq!(rows[0], "task,LR,OPTIMIZER,SEED,accuracy,best,summary");
    assert_eq!(rows[1..], ["0,0.1,'=adam,,,,", "1,1,,,,,", "2,,,7,,,"]);
}

#[sqlx::test(migrator = "persistence::MIGRATOR")]
async fn results_of_an_attempt_before_the_newest_are_not_told(pool: PgPool) {
    let api = TestApi::new(pool);
    let id = api.job(&with_results()).await;
    end_with(&api, &id, Status::Error, [Some(json!(1)), None, None]).await;
    assert_eq!(api.post(&format!("/jobs/{id}/retry"), &json!({})).await.status, 202);
    api.submit(&id, 8, "node01").await;
    let told = api.get(&format!("/jobs/{id}/results")).await.json();
    assert_eq!((&told[0]["value"], &told[0]["problem"]), (&Value::Null, &json!("the task has not ended")));
}

#[sqlx::test(migrator = "persistence::MIGRATOR")]
async fn a_job_without_results_has_an_empty_list(pool: PgPool) {
    let api = TestApi::new(pool);
    let id = api.job(&json!({"command": "true"})).await;
    assert_eq!(api.get(&format!("/jobs/{id}/results")).await.json(), json!([]));
    let table = api.get(&format!("/jobs/{id}/results?format=csv")).await.text();
    assert_eq!(table, "task\r\n");
}

#[sqlx::test(migrator = "persistence::MIGRATOR")]
async fn the_faults_of_results_name_their_fields(pool: PgPool) {
    let api = TestApi::new(pool);
    let body = json!({"command": "true", "results": [{"name": "a", "regex": "("}, {"name": "b", "json_file": "../x"}]});
    let problem = api.post("/jobs", &body).await.json();
    let at: Vec<_> = problem["errors"]
        .as_array()
        .unwrap()
        .iter()
        .map(|error| error["pointer"].as_str().unwrap())
        .collect();
    assert_eq!(at, ["/results/0/regex", "/results/1/json_file"]);
}
