//! Why a job failed.

#![expect(clippy::disallowed_methods, reason = "rows that a test needs")]

use domain::{Failure, Phase, Run, Status};
use serde_json::{Value, json};
use sqlx::PgPool;

use crate::support::TestApi;

/// Ends the job as if its run had failed like this.
async fn end_with(api: &TestApi, id: &str, status: Status, failure: Option<Value>) {
    api.submit(id, 7, "node01").await;
    api.see(id, |job| {
        job.run.is_over = true;
        job.phase = Phase::Finishing;
    })
    .await;
    let now = domain::Clock::now(&*api.clock);
    let failure: Option<Failure> = failure.map(|failure| serde_json::from_value(failure).unwrap());
    api.step(id, None, |job| {
        job.run = Run { is_over: true, failure, ..Run::default() };
        job.status = status;
        job.phase = Phase::Ended;
        job.finished_at = Some(now);
    })
    .await;
}

fn failure() -> Value {
    json!({
        "rule": "python-error", "category": "code", "why": "the code is wrong", "advice": "Read the traceback.",
        "line": {"log": "main.err", "offset": 5120, "line": "[rank3]: ValueError: x"}, "rank": 3, "node": "node02",
        "followed": [{"rule": "peer-closed", "log": "main.err", "offset": 6000, "line": "Connection closed by peer"}],
        "has_gaps": false,
    })
}

#[sqlx::test(migrator = "persistence::MIGRATOR")]
async fn a_failed_job_has_a_diagnosis_and_its_views_a_short_one(pool: PgPool) {
    let api = TestApi::new(pool);
    let id = api.job(&json!({"command": "false"})).await;
    let path = format!("/jobs/{id}/diagnosis");
    api.get(&path).await.problem(404, "not_failed");
    assert_eq!(api.get(&format!("/jobs/{id}/status")).await.json()["failure"], Value::Null);
    end_with(&api, &id, Status::Error, Some(failure())).await;
    let mut expected = failure();
    expected["first"] = expected["line"].take();
    expected.as_object_mut().unwrap().remove("line");
    for (key, value) in [("job_id", json!(id)), ("attempt", json!(1)), ("task", json!(0))] {
        expected[key] = value;
    }
    for query in ["", "?attempt=1", "?task=0&attempt=1"] {
        assert_eq!(api.get(&format!("{path}{query}")).await.json(), expected, "{query}");
    }
    let short = json!({"rule": "python-error", "category": "code", "node": "node02", "advice": "Read the traceback."});
    assert_eq!(api.get(&format!("/jobs/{id}/status")).await.json()["failure"], short);
    assert_eq!(api.get(&format!("/jobs/{id}")).await.json()["failure"], short);
    assert_eq!(api.get("/jobs").await.json()["jobs"][0]["failure"], short);
    api.get(&format!("{path}?attempt=2")).await.problem(404, "attempt_not_found");
    api.get(&format!("{path}?task=1")).await.problem(404, "task_not_found");
    api.get(&format!("{path}?attempt=0")).await.problem(400, "invalid_parameter");
}

#[sqlx::test(migrator = "persistence::MIGRATOR")]
async fn a_job_that_succeeded_has_none(pool: PgPool) {
    let api = TestApi::new(pool);
    let id = api.job(&json!({"command": "true"})).await;
    end_with(&api, &id, Status::Done, None).await;
    let problem = api.get(&format!("/jobs/{id}/diagnosis")).await;
    problem.problem(404, "not_failed");
    assert_eq!(api.get(&format!("/jobs/{id}")).await.json()["failure"], Value::Null);
}

#[sqlx::test(migrator = "persistence::MIGRATOR")]
async fn of_an_array_the_first_task_whose_newest_run_failed_is_diagnosed(pool: PgPool) {
    let api = TestApi::new(pool.clone());
    let id = api.job(&json!({"command": "true", "array": {"indices": "0-3"}})).await;
    api.submit(&id, 7, "node01").await;
    let run =
        "insert into runs (job_id, attempt, task, over, failure) values ($1::text::uuid, 1, $2, true, $3)";
    for (task, failure) in [(0, None), (1, Some(failure())), (3, Some(failure()))] {
        sqlx::query(run).bind(&id).bind(task).bind(failure).execute(&pool).await.unwrap();
    }
    let path = format!("/jobs/{id}/diagnosis");
    assert_eq!(api.get(&path).await.json()["task"], 1);
    assert_eq!(api.get(&format!("{path}?task=3")).await.json()["task"], 3);
    for task in [0, 2] {
        api.get(&format!("{path}?task={task}")).await.problem(404, "not_failed");
    }
}

#[sqlx::test(migrator = "persistence::MIGRATOR")]
async fn lists_show_why_the_first_failed_task_of_an_array_failed_and_find_and_count_it_by_that(pool: PgPool) {
    let api = TestApi::new(pool.clone());
    let id = api.job(&json!({"command": "true", "array": {"indices": "0-3"}})).await;
    api.submit(&id, 7, "node01").await;
    let run = "insert into runs (job_id, attempt, task, over, outcome, superseded, failure)
               values ($1::text::uuid, 1, $2, true, $3, $4, $5)";
    let of = |rule: &str| {
        let mut failure = failure();
        failure["rule"] = json!(rule);
        failure
    };
    for (task, outcome, superseded, failure) in [
        (3, "error", false, Some(of("file-missing"))),
        (2, "error", false, Some(failure())),
        // Neither this one, which succeeded in another attempt, nor one without evidence.
        (0, "retried", true, Some(of("node_fail"))),
        (1, "error", false, None),
    ] {
        let insert = sqlx::query(run).bind(&id).bind(task).bind(outcome).bind(superseded).bind(failure);
        insert.execute(&pool).await.unwrap();
    }
    let shown = async || {
        let list = api.get("/jobs?facets=rule").await.json();
        let job = api.get(&format!("/jobs/{id}")).await.json();
        let status = api.get(&format!("/jobs/{id}/status")).await.json();
        assert_eq!((&job["failure"], &status["failure"]), (&list["jobs"][0]["failure"], &job["failure"]));
        (job["failure"].clone(), list["facets"]["rule"].clone())
    };
    let found = async |rule: &str| {
        api.get(&format!("/jobs?rule={rule}")).await.json()["jobs"].as_array().unwrap().len()
    };
    assert_eq!(shown().await, (Value::Null, json!([])), "it has not ended");
    let now = domain::Clock::now(&*api.clock);
    api.step(&id, None, |job| {
        (job.status, job.phase, job.finished_at) = (Status::Error, Phase::Ended, Some(now));
    })
    .await;
    let short = json!({"rule": "python-error", "category": "code", "node": "node02", "advice": "Read the traceback."});
    assert_eq!(shown().await, (short, json!([{"value": "python-error", "jobs": 1}])));
    assert_eq!(
        (found("python-error").await, found("file-missing").await, found("node_fail").await),
        (1, 0, 0)
    );
    let retried = api.post(&format!("/jobs/{id}/retry"), &json!({})).await;
    assert_eq!(retried.status, 202, "{}", retried.text());
    assert_eq!(shown().await, (Value::Null, json!([])), "it goes again");
    assert_eq!(found("python-error").await, 0);
}

#[sqlx::test(migrator = "persistence::MIGRATOR")]
async fn a_job_is_found_by_the_rule_of_the_failure_that_it_shows(pool: PgPool) {
    let api = TestApi::new(pool);
    let id = api.job(&json!({"command": "false"})).await;
    end_with(&api, &id, Status::Error, Some(failure())).await;
    let list = api.get("/jobs?rule=python-error&facets=rule").await.json();
    assert_eq!(list["jobs"][0]["failure"]["rule"], "python-error");
    assert_eq!(list["facets"]["rule"], json!([{"value": "python-error", "jobs": 1}]));
}
