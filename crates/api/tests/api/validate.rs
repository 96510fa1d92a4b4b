use std::collections::BTreeSet;

use api::ClusterUnavailable;
use remote::{TestOnlyAnswer, TestVerdict};
use serde_json::{Value, json};
use sqlx::PgPool;

use crate::support::TestApi;

fn training() -> Value {
    json!({
        "image": "registry.example/tao/tao-toolkit:6", "network_arch": "classification_pyt", "action": "train",
        "specs": {"dataset": {"train_dataset": {"images_dir": "lustre:///lustre/a"}}},
        "secret_env_vars": {"HF_TOKEN": "hunter2"}, "cloud_metadata": {"slurm_user": "tao", "slurm_hostname": ["login1"],
        "aws": {"secret_key": "hunter3"}},
    })
}

#[sqlx::test(migrator = "persistence::MIGRATOR")]
async fn a_valid_request_is_shown_whole_and_stored_nowhere(pool: PgPool) {
    let api = TestApi::new(pool);
    let answer = api.post("/jobs/validate", &training()).await;
    assert_eq!(answer.status, 200, "{}", answer.text());
    let seen = answer.json();
    let job = &seen["job"];
    assert_eq!(job["required_paths"], json!(["/lustre/a"]));
    assert_eq!(job["resources"]["gpus_per_node"], 4, "defaults are filled in");
    assert_eq!((&job["use_requeue"], &job["retry"]["max_retries"]), (&json!(true), &json!(10)));
    assert_eq!(
        (&job["container"]["use_sqsh"], &job["resources"]["master_port"]),
        (&json!(true), &json!(null))
    );
    assert_eq!(
        (&job["secret_env_vars"], &job["secret_cloud_metadata"]),
        (&json!(["HF_TOKEN"]), &json!(["aws"]))
    );
    assert_eq!(job["cloud_metadata"]["slurm_user"], "tao");
    let script = seen["batch_script"].as_str().unwrap();
    assert!(script.starts_with("#!/bin/bash\n") && script.contains("container_handler"), "{script}");
    assert!(!answer.text().contains("hunter"), "{}", answer.text());
    assert_eq!(api.get("/jobs").await.json()["jobs"], json!([]));
}

#[sqlx::test(migrator = "persistence::MIGRATOR")]
async fn validating_refuses_what_submitting_refuses(pool: PgPool) {
    let api = TestApi::new(pool);
    for body in [
        json!({}),
        json!({"command": "x", "specs": {}}),
        json!({"command": "x", "resources": []}),
        json!({"command": "x", "colour": "red"}),
        json!({"command": "x", "resources": {"time_hours": 12}}),
        json!({"command": "x", "backend_details": {"slurm_metadata": {"slurm_job_id": "1"}}}),
        json!({"command": "x", "backend_details": {"backend_type": "lepton"}}),
    ] {
        let (sent, validated) = (api.post("/jobs", &body).await, api.post("/jobs/validate", &body).await);
        assert_eq!(sent.status, 422, "{body}");
        assert_eq!(sent.json()["errors"], validated.json()["errors"], "{body}");
    }
    let metadata = api.post("/jobs/validate", &json!({"backend_details": {"slurm_metadata": {}}})).await;
    assert!(metadata.text().contains("read-only"), "{}", metadata.text());
}

#[sqlx::test(migrator = "persistence::MIGRATOR")]
async fn the_tasks_and_submissions_of_an_array_are_shown(pool: PgPool) {
    let api = TestApi::new(pool);
    let body = json!({"command": "true", "array": {"matrix": {"lr": vec![0.1; 60], "seed": vec![1; 40]}, "max_parallel": 5}});
    let seen = api.post("/jobs/validate", &body).await.json();
    let array = json!({"tasks": 2400, "indices": "0-2399", "max_parallel": 5});
    assert_eq!((&seen["job"]["array"], &seen["submissions"]), (&array, &json!(3)));
    let mut training = training();
    training["array"] = json!({"indices": "0-1"});
    let refused = api.post("/jobs", &training).await;
    assert_eq!(refused.json()["errors"][0]["code"], "unsupported", "{}", refused.text());
    let seen = api.post("/jobs/validate", &json!({"command": "true"})).await.json();
    assert_eq!((&seen["job"]["array"], &seen["submissions"]), (&json!(null), &json!(1)));
    let first = api.job(&json!({"command": "true"})).await;
    let body =
        json!({"command": "true", "array": {"indices": "5-9"}, "needs": [{"job": first, "when": "each"}]});
    let seen = api.post("/jobs/validate", &body).await.json();
    let script = seen["batch_script"].as_str().unwrap();
    assert!(script.contains("#SBATCH --array=5-9\n"), "also of tasks that will wait: {script}");
}

#[sqlx::test(migrator = "persistence::MIGRATOR")]
async fn an_unknown_parameter_is_refused(pool: PgPool) {
    let api = TestApi::new(pool);
    let answer = api.post("/jobs/validate?alive=true", &json!({"command": "true"})).await;
    assert_eq!(answer.status, 400, "{}", answer.text());
}

#[sqlx::test(migrator = "persistence::MIGRATOR")]
async fn a_setting_that_may_be_a_mistake_is_a_warning(pool: PgPool) {
    let api = TestApi::new(pool);
    let cases = [
        (json!({"image": "tao"}), "moving_tag"),
        (json!({"specs": {"results_dir": "/lustre/mine"}}), "replaced"),
        (json!({"specs": {}}), "empty"),
        (json!({"resources": {"num_nodes": 2, "num_gpus": 4}}), "gpu_total"),
        (json!({"resources": {"num_gpus": 12}}), "gpu_total"),
        (json!({"resources": {"time_hours": 2, "timeout_hours": 2}}), "no_margin"),
        (json!({"inputs": ["/data/a"]}), "not_mounted"),
        (json!({"cloud_metadata": {"base_results_dir": "/lustre/elsewhere"}}), "ignored"),
    ];
    assert_eq!(api.post("/jobs/validate", &training()).await.json()["warnings"], json!([]));
    for (change, code) in cases {
        let mut body = training();
        for (key, value) in change.as_object().unwrap() {
            body[key] = value.clone();
        }
        let answer = api.post("/jobs/validate", &body).await;
        assert_eq!(answer.status, 200, "{body}: {}", answer.text());
        let warnings = answer.json()["warnings"].clone();
        let codes: Vec<&str> =
            warnings.as_array().unwrap().iter().map(|w| w["code"].as_str().unwrap()).collect();
        assert_eq!(codes, [code], "{body}");
        let stored = api.post("/jobs", &body).await.json();
        assert_eq!(stored["warnings"], warnings, "{body}");
        assert_eq!(api.get(&format!("/jobs/{}", stored["id"].as_str().unwrap())).await.json(), stored);
    }
}

/// A program's own time-out that the time limit of the job does not leave room for.
#[sqlx::test(migrator = "persistence::MIGRATOR")]
async fn a_time_limit_of_a_step_that_the_jobs_own_comes_before_is_a_warning(pool: PgPool) {
    let api = TestApi::new(pool);
    let warned = async |minutes: u32, ready: f64| {
        let job = json!({
            "services": [{"name": "model", "command": "serve", "ready": {"http": "/health", "timeout_minutes": ready}}],
            "steps": [
                {"name": "fetch", "nodes": 1, "command": "fetch"},
                {"name": "score", "nodes": 1, "command": "score", "timeout_minutes": minutes},
            ],
            "resources": {"num_nodes": 2, "time_hours": 2, "timeout_hours": 1.5},
        });
        let answer = api.post("/jobs/validate", &job).await;
        assert_eq!(answer.status, 200, "{}", answer.text());
        answer.json()["warnings"].clone()
    };
    assert_eq!(warned(59, 30.0).await, json!([]));
    let found = warned(60, 30.0).await;
    assert_eq!(
        (&found[0]["pointer"], &found[0]["code"]),
        (&json!("/steps/1/timeout_minutes"), &json!("no_margin"))
    );
    let detail = "is 60 minutes, after up to 30 minutes in which the services start; the job's own limit of 90 minutes comes \
                  first. Set a shorter one, or give the job more time";
    assert_eq!(found[0]["detail"], detail);
}

#[sqlx::test(migrator = "persistence::MIGRATOR")]
async fn an_id_that_exists_is_a_warning(pool: PgPool) {
    let api = TestApi::new(pool);
    let id = api.job(&json!({"command": "true"})).await;
    let answer = api.post("/jobs/validate", &json!({"id": id, "command": "false"})).await;
    assert_eq!(answer.json()["warnings"][0]["code"], "id_exists");
}

/// Every field that the program reads stands in the document, and every one of the document is read.
#[sqlx::test(migrator = "persistence::MIGRATOR")]
async fn the_document_has_exactly_the_fields_that_are_read(pool: PgPool) {
    let api = TestApi::new(pool);
    let document = api.get("/openapi.json").await.json();
    let objects = [
        ("JobRequest", json!({"zzz": 1})),
        ("ResourcesRequest", json!({"resources": {"zzz": 1}})),
        ("ContainerRequest", json!({"container": {"zzz": 1}})),
        ("RetryBudget", json!({"retry": {"zzz": 1}})),
        ("BackendDetails", json!({"backend_details": {"zzz": 1}})),
    ];
    for (schema, body) in objects {
        let properties = document["components"]["schemas"][schema]["properties"].as_object().unwrap();
        let documented: BTreeSet<&str> = properties.keys().map(String::as_str).collect();
        let refusal = api.post("/jobs", &body).await.json();
        let detail = refusal["errors"][0]["detail"].as_str().unwrap().to_owned();
        // The program names what it reads: "the known fields are `a`, `b`".
        let read: BTreeSet<&str> = detail.split('`').skip(1).step_by(2).collect();
        assert_eq!(documented, read, "{schema}");
    }
}

#[sqlx::test(migrator = "persistence::MIGRATOR")]
async fn with_live_the_cluster_checks_the_request(pool: PgPool) {
    let api = TestApi::new(pool);
    *api.ops.trial.lock().unwrap() = Some(TestOnlyAnswer {
        script: Some(TestVerdict::Accepted("sbatch: Job 7 to start at 2026-01-01T00:00:00".to_owned())),
        missing: vec!["/lustre/a".parse().unwrap()],
        unknown: vec![],
    });
    assert_eq!(api.post("/jobs/validate", &training()).await.json()["live"], json!(null));
    assert!(api.ops.asked.lock().unwrap().is_empty(), "nobody is asked who need not be");
    let answer = api.post("/jobs/validate?live=true", &training()).await.json();
    assert_eq!(
        answer["live"],
        json!({
            "accepted": true, "sbatch_output": "sbatch: Job 7 to start at 2026-01-01T00:00:00",
            "missing_paths": ["/lustre/a"], "unknown_paths": [],
        })
    );
    let asked = api.ops.asked.lock().unwrap().concat();
    assert!(asked.contains("/lustre/a\n") && asked.contains("#SBATCH --time="), "{asked}");
    assert!(!asked.contains("hunter"));
}

#[sqlx::test(migrator = "persistence::MIGRATOR")]
async fn a_cluster_that_does_not_answer_is_no_verdict(pool: PgPool) {
    let api = TestApi::new(pool);
    *api.ops.outage.lock().unwrap() = Some(ClusterUnavailable::Unanswered { detail: "no route".to_owned() });
    let answer = api.post("/jobs/validate?live=true", &training()).await;
    answer.problem(503, "cluster_unavailable");
    assert_eq!(api.post("/jobs/validate?live=perhaps", &training()).await.status, 400);
}
