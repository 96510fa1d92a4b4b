//! Tools that change something.

use axum::{
    Json,
    http::StatusCode,
    response::{IntoResponse, Response},
};
use serde_json::{Value, json};

use super::{
    answers::{JOB, NEW, changed, failed, job, status},
    fake_api::FakeApi,
};

#[tokio::test]
async fn a_job_is_only_checked_unless_the_caller_says_otherwise() {
    let api = FakeApi::new();
    let tools = api.tools();
    let request = json!({"command": "nvidia-smi", "resources": {"gpus_per_node": 1}});
    let data = tools.data("submit_job", json!({"job": request})).await;
    assert_eq!(
        (&data["dry_run"], &data["job_id"], &data["submissions"]),
        (&json!(true), &Value::Null, &json!(1))
    );
    assert_eq!(data["warnings"]["items"][0]["code"], "idle");
    assert_eq!(data["batch_script"], "#!/bin/bash\ntrue\n");
    tools.data("submit_job", json!({"job": request, "ask_cluster": true})).await;
    let asked: Vec<_> = api.asked().into_iter().map(|asked| (asked.what, asked.body)).collect();
    let expected = ["POST /jobs/validate", "POST /jobs/validate?live=true"]
        .map(|what| (what.to_owned(), request.clone()));
    assert_eq!(asked, expected);
}

#[tokio::test]
async fn a_stored_job_has_a_key_and_is_stored_once() {
    let api = FakeApi::new();
    api.with("POST /jobs", |_| -> Response {
        let stored = changed(job(status()), &json!({"id": NEW, "status": "Pending"}));
        (StatusCode::CREATED, [("idempotency-replayed", "true")], Json(stored)).into_response()
    });
    let tools = api.tools();
    let error = tools.error("submit_job", json!({"job": {}, "dry_run": false})).await;
    assert!(
        error["message"].as_str().unwrap().contains("idempotency_key") && api.asked().is_empty(),
        "{error}"
    );
    let data = tools
        .data("submit_job", json!({"job": {"command": "x"}, "dry_run": false, "idempotency_key": "k-1"}))
        .await;
    assert_eq!((&data["job_id"], &data["stored_before"]), (&json!(NEW), &json!(true)));
    let asked = api.asked();
    assert_eq!(
        (asked[0].what.as_str(), &asked[0].headers["idempotency-key"]),
        ("POST /jobs", &"k-1".parse().unwrap())
    );
    let hostile = json!({"job": {}, "dry_run": false, "idempotency_key": "a\r\nx-evil: 1"});
    assert_eq!(tools.error("submit_job", hostile).await["code"], "invalid_arguments");
}

#[tokio::test]
async fn a_refused_job_names_every_fault() {
    let api = FakeApi::new();
    let errors =
        json!([{"pointer": "/comand", "code": "unknown_field", "detail": "Did you mean `command`?"}]);
    let problem = json!({"title": "The request is not valid", "detail": "One field.", "code": "invalid_request", "errors": errors});
    api.answer("POST /jobs/validate", StatusCode::UNPROCESSABLE_ENTITY, problem);
    let error = api.tools().error("submit_job", json!({"job": {"comand": "x"}})).await;
    assert_eq!(error["code"], "invalid_request");
    assert_eq!(
        error["errors"]["items"][0],
        json!({"at": "/comand", "code": "unknown_field", "detail": "Did you mean `command`?"})
    );
    assert!(error["what_to_do"].as_str().unwrap().contains("errors"));
}

#[tokio::test]
async fn a_retry_without_changes_is_the_same_job() {
    let api = FakeApi::new();
    let arguments =
        json!({"job_id": JOB, "tasks": "failed", "secret_env_vars": {"T": "x"}, "idempotency_key": "k"});
    let data = api.tools().data("retry_job", arguments).await;
    assert_eq!((&data["job_id"], &data["is_new_job"]), (&json!(JOB), &json!(false)));
    let asked = &api.asked()[0];
    assert_eq!(asked.what, format!("POST /jobs/{JOB}/retry"));
    assert_eq!(asked.body, json!({"tasks": "failed", "secret_env_vars": {"T": "x"}}));
    assert_eq!(asked.headers["idempotency-key"], "k");
}

#[tokio::test]
async fn a_retry_with_changes_is_a_new_job_like_the_old_one() {
    let api = FakeApi::new();
    let tools = api.tools();
    let arguments = json!({"job_id": JOB, "changes": {"resources": {"memory": "2G", "time_hours": 2}}});
    let checked = tools.data("retry_job", changed(arguments.clone(), &json!({"dry_run": true}))).await;
    assert_eq!((&checked["job_id"], &checked["new_job"]["dry_run"]), (&Value::Null, &json!(true)));
    let data = tools.data("retry_job", arguments).await;
    assert_eq!((&data["job_id"], &data["is_new_job"]), (&json!(NEW), &json!(true)));
    let other = json!({"job_id": JOB, "changes": {"resources": {"time_hours": 2, "memory": "2G"}}});
    tools.data("retry_job", other).await;
    let asked = api.asked();
    let stored: Vec<_> = asked.iter().filter(|asked| asked.what == "POST /jobs").collect();
    let request = &stored[0].body;
    assert_eq!(
        (&request["command"], &request["labels"]["team"]),
        (&json!("python train.py"), &json!("vision"))
    );
    assert_eq!(
        (&request["resources"]["memory"], &request["resources"]["cpus_per_task"]),
        (&json!("2G"), &json!(4))
    );
    assert!(request["resources"].get("total_gpus").is_none() && request.get("id").is_none(), "{request}");
    // The same retry, once more: the API knows the key and the request.
    assert_eq!(stored[0].headers["idempotency-key"], stored[1].headers["idempotency-key"]);
    assert_eq!(request.to_string(), stored[1].body.to_string());
    tools.data("retry_job", json!({"job_id": JOB, "changes": {"resources": {"memory": "4G"}}})).await;
    let last = api.asked().pop().unwrap();
    assert_ne!(last.headers["idempotency-key"], stored[0].headers["idempotency-key"]);
}

#[tokio::test]
async fn a_new_job_is_never_less_than_the_old_one() {
    let api = FakeApi::new();
    let whole = changed(job(failed()), &json!({"files": ["a"], "secret_env_vars": ["TOKEN"]}));
    api.answer(&format!("GET /jobs/{JOB}"), StatusCode::OK, whole);
    let tools = api.tools();
    let error =
        tools.error("retry_job", json!({"job_id": JOB, "changes": {"resources": {"memory": "2G"}}})).await;
    assert_eq!(error["code"], "not_in_full");
    assert!(error["message"].as_str().unwrap().contains("secret_env_vars, files"), "{error}");
    let given = json!({"job_id": JOB, "changes": {"files": {"a": {"text": "x"}}, "secret_env_vars": null}});
    tools.data("retry_job", given).await;
    assert_eq!(api.asked().pop().unwrap().body["files"], json!({"a": {"text": "x"}}));
}

#[tokio::test]
async fn a_job_that_runs_gets_no_second_one_beside_it() {
    let api = FakeApi::new();
    api.answer(&format!("GET /jobs/{JOB}"), StatusCode::OK, job(status()));
    let error = api.tools().error("retry_job", json!({"job_id": JOB, "changes": {"name": "x"}})).await;
    assert_eq!(error["code"], "wrong_state");
    assert!(api.asked().iter().all(|asked| asked.what.starts_with("GET")));
}

#[tokio::test]
async fn a_cancellation_says_whether_there_was_something_to_cancel() {
    let api = FakeApi::new();
    let tools = api.tools();
    let data = tools.data("cancel_job", json!({"job_id": JOB, "tasks": "3"})).await;
    assert_eq!((&data["job"]["status"], &data["ended"]), (&json!("Canceling"), &json!(false)));
    assert_eq!(api.asked()[0].body, json!({"tasks": "3"}));
    api.answer(&format!("POST /jobs/{JOB}/cancel"), StatusCode::OK, failed());
    let result = tools.call("cancel_job", json!({"job_id": JOB})).await;
    assert!(result["content"][0]["text"].as_str().unwrap().contains("nothing was canceled"), "{result}");
}
