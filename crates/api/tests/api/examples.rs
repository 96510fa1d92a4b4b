//! The examples of the document, each sent as it stands there.

use std::sync::atomic::{AtomicU64, Ordering};

use axum::{body::Body, http::Request};
use serde_json::{Value, json};
use sqlx::PgPool;
use uuid::Uuid;

use crate::{document::operations, support::TestApi};

/// A job that failed, with the tasks of the examples and their secret, in a pipeline with the same id.
async fn failed(api: &TestApi) -> String {
    static LAST: AtomicU64 = AtomicU64::new(0);
    let id = Uuid::from_u128(u128::from(LAST.fetch_add(1, Ordering::Relaxed)) + 1);
    let array = json!({"indices": "0-9"});
    let job = json!({"id": id, "command": "true", "array": array, "secret_env_vars": {"HF_TOKEN": "x"}});
    let stored = api.post("/pipelines", &json!({"id": id, "jobs": {"train": job}})).await;
    assert_eq!(stored.status, 201, "{}", stored.text());
    api.error(&id.to_string()).await;
    id.to_string()
}

/// What the examples need to be there: a failed job, and a cluster that was added.
async fn with_what_they_need(pool: PgPool) -> (TestApi, String) {
    let api = TestApi::new(pool);
    let job = failed(&api).await;
    let kept = json!({"name": "kept", "user": "ann", "hosts": ["login9"], "ssh_key": "k", "host_keys": ["login9 x y"]});
    assert_eq!(api.post("/clusters", &kept).await.status, 201);
    (api, job)
}

fn filled(path: &str, operation: &Value, job: &str) -> String {
    // What belongs to every cluster is asked of the one of the file.
    let cluster = if operation["operationId"] == "replace_cluster" { "kept" } else { "dgx" };
    path.replace("{id}", job).replace("{task}", "0").replace("{name}", cluster)
}

#[sqlx::test(migrator = "persistence::MIGRATOR")]
async fn every_call_that_takes_a_document_has_examples_and_each_is_accepted(pool: PgPool) {
    let (api, _) = with_what_they_need(pool).await;
    let mut sent = 0;
    for (method, path, operation) in operations() {
        let Some(content) = operation.pointer("/requestBody/content").and_then(Value::as_object) else {
            continue;
        };
        for (kind, content) in content {
            let examples = content["examples"].as_object().into_iter().flatten();
            let mut missing = true;
            for (name, example) in examples {
                let job = failed(&api).await;
                let request = Request::builder()
                    .method(method.to_uppercase().as_str())
                    .uri(filled(&path, &operation, &job))
                    .header("content-type", kind)
                    .header("if-match", "*");
                let answer = api.send(request.body(Body::from(example["value"].to_string())).unwrap()).await;
                assert!(
                    answer.status.is_success(),
                    "{method} {path} {name}: {} {}",
                    answer.status,
                    answer.text()
                );
                (missing, sent) = (false, sent + 1);
            }
            assert!(!missing, "{method} {path} has no example");
        }
    }
    assert!(sent >= 9, "{sent}");
}

#[sqlx::test(migrator = "persistence::MIGRATOR")]
async fn every_example_of_a_parameter_is_accepted(pool: PgPool) {
    let (api, job) = with_what_they_need(pool).await;
    let mut asked = 0;
    for (method, path, operation) in operations().into_iter().filter(|(method, ..)| method == "get") {
        for parameter in operation["parameters"].as_array().into_iter().flatten() {
            let example = match &parameter["example"] {
                Value::Null => continue,
                Value::Array(values) => values[0].clone(),
                value => value.clone(),
            };
            let (name, value) = (parameter["name"].as_str().unwrap(), example.as_str().unwrap());
            let path = filled(&path, &operation, &job);
            let request = match parameter["in"].as_str() {
                Some("query") => Request::get(format!("{path}?{name}={value}")),
                _ => Request::get(path.as_str()).header(name, value),
            };
            let answer = api.send(request.body(Body::empty()).unwrap()).await;
            assert!(answer.status.is_success(), "{method} {path} {name}={value}: {}", answer.text());
            asked += 1;
        }
    }
    assert!(asked >= 3, "{asked}");
}
