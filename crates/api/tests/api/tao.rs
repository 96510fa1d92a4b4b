//! TAO's own wire, as its published client speaks it: JSON without a type, a token as a password, a status that is
//! asked by the directory of results.

use axum::{
    body::Body,
    http::{Request, header},
};
use base64::{Engine, prelude::BASE64_STANDARD};
use serde_json::{Value, json};
use sqlx::PgPool;

use crate::support::{Answer, TestApi};

const POST: &str = "/api/v1/internal/container_job";
const ID: &str = "0f8fad5b-d9cb-469f-a165-70867728950e";

/// What `send_microservice_request` makes of a training.
fn training() -> Value {
    json!({
        "neural_network_name": "dino", "action_name": "train",
        "specs": {"results_dir": format!("/results/{ID}"), "train": {"num_gpus": 2}},
        "cloud_metadata": {"slurm_user": "tao", "slurm_hostname": ["login1"], "aws": {"b": {"secret_key": "hunter2"}}},
        "docker_env_vars": {
            "TAO_API_SERVER": "https://nvidia.com", "TAO_LOGGING_SERVER_URL": "https://nvidia.com",
            "CLOUD_BASED": "True", "JOB_ID": ID,
        },
        "job_id": ID, "statefulset_replicas": 2,
    })
}

async fn post(api: &TestApi, body: &Value) -> Answer {
    api.send(Request::post(POST).body(Body::from(body.to_string())).unwrap()).await
}

async fn status(api: &TestApi, results_dir: &str) -> Answer {
    api.get(&format!("{POST}:status?results_dir={results_dir}")).await
}

#[sqlx::test(migrator = "persistence::MIGRATOR")]
async fn a_posted_job_is_one_of_ours_and_may_be_posted_again(pool: PgPool) {
    let api = TestApi::new(pool);
    for _ in 0..2 {
        let answer = post(&api, &training()).await;
        assert_eq!((answer.status.as_u16(), answer.json()), (200, json!({"job_id": ID})));
    }
    let job = api.get(&format!("/jobs/{ID}")).await.json();
    assert_eq!(job["network_arch"], "dino");
    assert_eq!(job["action"], "train");
    assert_eq!(job["image"], "registry.example#tao/dino:1");
    assert_eq!(job["backend_details"]["cluster_name"], "dgx");
    assert_eq!(job["resources"]["num_nodes"], 2);
    assert_eq!(job["resources"]["gpus_per_node"], 2);
    assert!(job["docker_env_vars"].get("CLOUD_BASED").is_none(), "{job}");
    assert!(!job.to_string().contains("hunter2"));
}

#[sqlx::test(migrator = "persistence::MIGRATOR")]
async fn the_status_is_found_by_the_directory_of_results(pool: PgPool) {
    let api = TestApi::new(pool);
    post(&api, &training()).await;
    let mut other = training();
    other["job_id"] = "1f8fad5b-d9cb-469f-a165-70867728950e".into();
    other["specs"]["results_dir"] = "lustre:///lustre/brain/experiment_0".into();
    post(&api, &other).await;
    for (dir, id) in [
        (format!("/results/{ID}"), ID),
        // Not the text of the specification, and still TAO's own place for the job.
        (format!("s3://bucket/results/{ID}/"), ID),
        ("lustre:///lustre/brain/experiment_0".to_owned(), "1f8fad5b-d9cb-469f-a165-70867728950e"),
        ("/lustre/brain/experiment_0".to_owned(), "1f8fad5b-d9cb-469f-a165-70867728950e"),
    ] {
        let answer = status(&api, &dir).await;
        assert_eq!(answer.status, 200, "{dir}: {}", answer.text());
        let answer = answer.json();
        assert_eq!((&answer["status"], &answer["job_id"]), (&json!("Pending"), &json!(id)), "{dir}");
    }
    api.post(&format!("/jobs/{ID}/cancel"), &json!({})).await;
    assert_eq!(status(&api, &format!("/results/{ID}")).await.json()["status"], "Canceling");
}

#[sqlx::test(migrator = "persistence::MIGRATOR")]
async fn the_newest_of_two_jobs_with_one_directory_is_found(pool: PgPool) {
    let api = TestApi::new(pool);
    for id in [ID, "1f8fad5b-d9cb-469f-a165-70867728950e"] {
        let mut job = training();
        job["job_id"] = id.into();
        job["specs"]["results_dir"] = "/lustre/same".into();
        post(&api, &job).await;
        assert_eq!(status(&api, "/lustre/same").await.json()["job_id"], id);
        api.clock.advance(chrono::TimeDelta::seconds(1));
    }
}

#[sqlx::test(migrator = "persistence::MIGRATOR")]
async fn a_job_is_paused_by_the_id_in_the_body(pool: PgPool) {
    let api = TestApi::new(pool);
    let pause = async |body: Value| {
        let request = Request::post(format!("{POST}:pause")).body(Body::from(body.to_string())).unwrap();
        api.send(request).await
    };
    pause(json!({"job_id": ID})).await.problem(404, "job_not_found");
    post(&api, &training()).await;
    for _ in 0..2 {
        let answer = pause(json!({"job_id": ID})).await;
        assert_eq!(answer.status, 200, "{}", answer.text());
        assert!(!answer.json()["message"].as_str().unwrap().is_empty());
    }
    let status = status(&api, &format!("/results/{ID}")).await.json()["status"].clone();
    assert!(status == "Pausing" || status == "Paused", "{status}");
    let refused = pause(json!({})).await;
    refused.problem(422, "invalid_request");
    assert!(refused.json()["error_desc"].as_str().unwrap().contains("job_id"));
    api.error(ID).await;
    pause(json!({"job_id": ID})).await.problem(409, "wrong_state");
}

#[sqlx::test(migrator = "persistence::MIGRATOR")]
async fn an_unknown_results_directory_has_no_status(pool: PgPool) {
    let api = TestApi::new(pool);
    post(&api, &training()).await;
    for dir in ["/results/other", "/results", &format!("/results/{ID}/below")] {
        let answer = status(&api, dir).await;
        answer.problem(404, "job_not_found");
        assert_eq!(answer.json()["error_code"], 404);
    }
    for none in [format!("{POST}:status"), format!("{POST}:status?results_dir=")] {
        let answer = api.get(&none).await;
        answer.problem(400, "invalid_parameter");
        assert!(answer.json()["error_desc"].as_str().unwrap().contains("results_dir"));
    }
}

#[sqlx::test(migrator = "persistence::MIGRATOR")]
async fn a_refusal_names_tao_s_fields(pool: PgPool) {
    let api = TestApi::new(pool);
    let refused = async |change: &dyn Fn(&mut Value)| {
        let mut body = training();
        change(&mut body);
        let answer = post(&api, &body).await;
        answer.problem(422, "invalid_request");
        let answer = answer.json();
        assert_eq!(answer["error_code"], 422);
        (answer["errors"][0]["pointer"].clone(), answer["error_desc"].as_str().unwrap().to_owned())
    };
    let (at, text) = refused(&|body| body["neural_network_name"] = "segformer".into()).await;
    assert_eq!(at, "/neural_network_name");
    assert!(text.contains("tao.images"), "{text}");
    let (at, text) = refused(&|body| body["cloud_metadata"]["slurm_hostname"] = json!(["evil"])).await;
    assert_eq!(at, "/cloud_metadata/slurm_hostname");
    assert!(text.contains("dgx"), "{text}");
    let (at, _) = refused(&|body| body["action_name"] = "a b".into()).await;
    assert_eq!(at, "/action_name");
    let (at, _) = refused(&|body| body["statefulset_replicas"] = 100_000.into()).await;
    assert_eq!(at, "/statefulset_replicas");
    let (at, _) = refused(&|body| body["colour"] = "red".into()).await;
    assert_eq!(at, "/colour");
    let (_, text) = refused(&|body| {
        body["action_name"] = "a b".into();
        body["docker_env_vars"]["SLURM_JOB_ID"] = "1".into();
    })
    .await;
    assert!(text.contains("/action_name") && text.contains("/docker_env_vars/SLURM_JOB_ID"), "{text}");
    // Another body for an id that is taken.
    post(&api, &training()).await;
    let mut other = training();
    other["specs"]["train"]["num_gpus"] = 1.into();
    let answer = post(&api, &other).await;
    answer.problem(422, "id_conflict");
    assert_eq!(answer.json()["errors"][0]["pointer"], "/job_id");
    // Elsewhere the names are not there.
    assert!(api.post("/jobs", &json!({})).await.json().get("error_desc").is_none());
}

#[sqlx::test(migrator = "persistence::MIGRATOR")]
async fn a_token_comes_as_a_password_and_only_there(pool: PgPool) {
    let api = TestApi::guarded(pool);
    api.token("tsl_ann", "ann", "read write", None).await;
    api.token("tsl_bob", "bob", "read write", None).await;
    let basic = |token: &str| format!("Basic {}", BASE64_STANDARD.encode(format!("tao:{token}")));
    let call = async |token: &str, request: axum::http::request::Builder, body: &Value| {
        let request = request.header(header::AUTHORIZATION, basic(token));
        api.send(request.body(Body::from(body.to_string())).unwrap()).await
    };
    post(&api, &training()).await.problem(401, "unauthorized");
    call("tsl_eve", Request::post(POST), &training()).await.problem(401, "unauthorized");
    assert_eq!(call("tsl_ann", Request::post(POST), &training()).await.status, 200);
    let asked = || Request::get(format!("{POST}:status?results_dir=/results/{ID}"));
    assert_eq!(call("tsl_ann", asked(), &json!(null)).await.json()["status"], "Pending");
    call("tsl_bob", asked(), &json!(null)).await.problem(404, "job_not_found");
    call("tsl_ann", Request::get("/jobs"), &json!(null)).await.problem(401, "unauthorized");
}

#[sqlx::test(migrator = "persistence::MIGRATOR")]
async fn a_browser_must_send_a_json_content_type(pool: PgPool) {
    let api = TestApi::new(pool);
    for header in ["origin", "sec-fetch-site"] {
        let request = Request::post(POST).header(header, "https://evil.example");
        let answer = api.send(request.body(Body::from(training().to_string())).unwrap()).await;
        answer.problem(415, "unsupported_media_type");
    }
}

#[sqlx::test(migrator = "persistence::MIGRATOR")]
async fn the_microservice_is_alive_and_ready(pool: PgPool) {
    let api = TestApi::guarded(pool);
    assert_eq!(api.get("/api/v1/health/liveness").await.status, 200);
    assert_eq!(api.get("/api/v1/health/readiness").await.status, 200);
}
