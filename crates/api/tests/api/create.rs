use chrono::TimeDelta;
use serde_json::json;
use sqlx::PgPool;

use axum::{body::Body, http::Request};

use crate::support::TestApi;

#[sqlx::test(migrator = "persistence::MIGRATOR")]
async fn a_job_is_created_with_a_location_and_reads_back_as_it_was_answered(pool: PgPool) {
    let api = TestApi::new(pool);
    let answer = api
        .post(
            "/jobs",
            &json!({
                "name": "clip", "labels": {"team": "vision"},
                "image": "registry.example/tao/tao-toolkit:6",
                "network_arch": "classification_pyt", "action": "train",
                "specs": {"train": {"dataset": "lustre:///lustre/data/a"}},
                "resources": {"num_gpus": 16, "time_hours": 2},
                "backend_details": {"backend_type": "slurm", "partition": "polar", "cluster_name": "dgx"},
            }),
        )
        .await;
    assert_eq!(answer.status, 201, "{}", answer.text());
    let job = answer.json();
    assert_eq!(answer.header("location"), format!("/jobs/{}", job["id"].as_str().unwrap()));
    assert_eq!((&job["status"], &job["phase"]), (&json!("Pending"), &json!("queued")));
    assert_eq!(job["specs"], json!({"train": {"dataset": "/lustre/data/a"}}));
    assert_eq!(job["resources"]["num_nodes"], 2);
    assert_eq!(job["resources"]["total_gpus"], 16);
    assert_eq!(job["attempt_details"], json!(null));
    assert_eq!(
        job["backend_details"],
        json!({
            "backend_type": "slurm", "partition": "polar", "cluster_name": "dgx",
            "account": null, "qos": null, "reservation": null, "nice": null, "begin": null, "deadline": null, "comment": null,
            "sbatch_options": {},
            "slurm_metadata": {
                "slurm_job_id": null, "job_dir": "/lustre/users/tao", "retry_count": 0, "failed_slurm_job_ids": [],
            },
        })
    );
    let read = api.get(answer.header("location")).await;
    assert_eq!(read.status, 200);
    assert_eq!(read.json(), job);
}

#[sqlx::test(migrator = "persistence::MIGRATOR")]
async fn secrets_never_come_back(pool: PgPool) {
    let api = TestApi::new(pool);
    let answer = api
        .post(
            "/jobs",
            &json!({
                "command": "true",
                "secret_env_vars": {"HF_TOKEN": "hunter2"},
                "docker_env_vars": {"WANDB_API_KEY": "hunter3", "WANDB_PROJECT": "open"},
                "cloud_metadata": {"aws": {"access_key": "hunter4"}},
            }),
        )
        .await;
    assert_eq!(answer.status, 201);
    let job = answer.json();
    assert_eq!(job["secret_env_vars"], json!(["HF_TOKEN", "WANDB_API_KEY"]));
    assert_eq!(job["docker_env_vars"], json!({"WANDB_PROJECT": "open"}));
    let at = answer.header("location").to_owned();
    let canceled = api.post(&format!("{at}/cancel"), &json!({})).await;
    assert_eq!(canceled.status, 202);
    for seen in
        [answer, api.get(&at).await, api.get(&format!("{at}/status")).await, api.get("/jobs").await, canceled]
    {
        assert!(!seen.text().contains("hunter"), "{}", seen.text());
    }
}

#[sqlx::test(migrator = "persistence::MIGRATOR")]
async fn the_same_id_and_body_again_is_the_same_job_and_another_body_is_refused(pool: PgPool) {
    let api = TestApi::new(pool);
    let id = "0f8fad5b-d9cb-469f-a165-70867728950e";
    let first = api.post_text("/jobs", &format!(r#"{{"id":"{id}","command":"true","num_gpu":1}}"#)).await;
    assert_eq!(first.status, 201, "{}", first.text());
    api.clock.advance(TimeDelta::seconds(60));
    let again =
        api.post_text("/jobs", &format!(r#"{{ "num_gpu": 1, "command": "true", "id": "{id}" }}"#)).await;
    assert_eq!(again.status, 200, "{}", again.text());
    assert_eq!(again.json(), first.json());
    assert_eq!(again.header("location"), format!("/jobs/{id}"));
    let other = api.post("/jobs", &json!({"id": id, "command": "false", "num_gpu": 1})).await;
    assert_eq!(other.problem(422, "id_conflict")["errors"][0]["pointer"], "/id");
    assert_eq!(api.get("/jobs").await.json()["jobs"].as_array().unwrap().len(), 1);
}

#[sqlx::test(migrator = "persistence::MIGRATOR")]
async fn every_fault_of_a_request_is_named_and_nothing_is_stored(pool: PgPool) {
    let api = TestApi::new(pool);
    let unknown = api
        .post(
            "/jobs",
            &json!({"comand": "x", "backend_details": {"slurm_metadata": {"slurm_job_id": "1; rm"}}}),
        )
        .await
        .problem(422, "invalid_request");
    let pointers: Vec<_> = unknown["errors"].as_array().unwrap().iter().map(|e| &e["pointer"]).collect();
    assert_eq!(pointers, ["/comand", "/backend_details/slurm_metadata"]);
    assert!(unknown["errors"][0]["detail"].as_str().unwrap().contains("`command`"));

    let wrong = api.post("/jobs", &json!({"command": "x", "resources": {"num_gpus": "4"}})).await;
    assert_eq!(wrong.problem(422, "invalid_request")["errors"][0]["pointer"], "/resources/num_gpus");
    let list = api.post("/jobs", &json!({"command": "x", "container": [["/lustre"]]})).await;
    assert_eq!(list.problem(422, "invalid_request")["errors"][0]["pointer"], "/container");
    let rule = api.post("/jobs", &json!({"command": "x", "backend_details": {"cluster_name": "nope"}})).await;
    let rule = rule.problem(422, "invalid_request");
    assert_eq!(rule["errors"][0]["code"], "unknown_cluster");
    assert!(rule["detail"].as_str().unwrap().contains("dgx"));
    let nul = api
        .post("/jobs", &json!({"network_arch": "a", "action": "b", "image": "x", "specs": {"a": "\u{0}"}}))
        .await;
    assert_eq!(nul.problem(422, "invalid_request")["errors"][0]["pointer"], "/specs/a");
    assert_eq!(api.get("/jobs").await.json()["jobs"], json!([]));
}

#[sqlx::test(migrator = "persistence::MIGRATOR")]
async fn the_deepest_document_that_is_accepted_can_be_read_back(pool: PgPool) {
    let api = TestApi::new(pool);
    // The body itself is the first level, `specs` the second.
    let nested = |levels: usize| format!("{}1{}", r#"{"a":"#.repeat(levels - 1), "}".repeat(levels - 1));
    let send = async |levels: usize| {
        let specs = nested(levels);
        let body = format!(r#"{{"network_arch": "a", "action": "b", "image": "x", "specs": {specs}}}"#);
        api.post_text("/jobs", &body).await
    };
    let deepest = send(64).await;
    assert_eq!(deepest.status, 201, "{}", deepest.text());
    assert_eq!(api.get(deepest.header("location")).await.json(), deepest.json());
    send(65).await.problem(422, "too_deep");
    assert_eq!(api.get("/jobs").await.json()["jobs"].as_array().unwrap().len(), 1);
}

#[sqlx::test(migrator = "persistence::MIGRATOR")]
async fn a_trace_goes_with_the_job_into_slurms_comment_and_a_garbled_one_goes_nowhere(pool: PgPool) {
    let api = TestApi::new(pool);
    let send = async |trace: &str| {
        let request =
            Request::post("/jobs").header("content-type", "application/json").header("traceparent", trace);
        let answer = api.send(request.body(Body::from(r#"{"command": "true"}"#)).unwrap()).await;
        assert_eq!(answer.status, 201, "{}", answer.text());
        api.get(answer.header("location")).await.json()["traceparent"].clone()
    };
    let trace = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
    assert_eq!(send(trace).await, trace);
    assert_eq!(send("00-owned-by-somebody-01").await, json!(null));
}
