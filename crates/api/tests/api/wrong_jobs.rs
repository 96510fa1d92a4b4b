//! Wrong jobs, as a new user writes them: each answer of `validate` names the field, the value and what to do.

use remote::{TestOnlyAnswer, TestVerdict};
use serde_json::{Value, json};
use sqlx::PgPool;

use crate::{clusters::learn, support::TestApi};

/// Four nodes with 8 GPUs, as in a small cluster.
const PARTITIONS: &str = "polar*|up|4:00:00|n/a|4|idle|64|1|gpu:8\ngrizzly|up|4:00:00|n/a|2|idle|64|1|gpu:8\n\
                          long|up|7-00:00:00|n/a|4|idle|64|1|gpu:8";

/// What is wrong, the changed fields of a valid job, the named field, and what the answer says of the value and of what
/// to do.
#[expect(clippy::too_many_lines, reason = "one job after another")]
fn wrong_jobs() -> Vec<(&'static str, Value, &'static str, &'static str, &'static str)> {
    vec![
        ("a field with a typing error", json!({"comand": "x"}), "/comand", "not a known field", "`command`"),
        (
            "a number as a word",
            json!({"resources": {"gpus_per_node": "four"}}),
            "/resources/gpus_per_node",
            // A fault of the type never repeats a value, which may be a secret.
            "this string",
            "must be a whole number",
        ),
        (
            "more GPUs than the cluster has",
            json!({"resources": {"num_gpus": 1000}}),
            "/resources/num_gpus",
            "is 1000, which needs 125 nodes with 8 GPUs each; partition polar has 4, partition grizzly has 2",
            "Request at most 32 GPUs",
        ),
        (
            "more nodes than the partition has",
            json!({"resources": {"num_nodes": 5, "gpus_per_node": 1}}),
            "/resources/num_nodes",
            "is 5 nodes with 1 GPU each",
            "Request at most 4 nodes",
        ),
        (
            "more GPUs than a node has",
            json!({"resources": {"gpus_per_node": 16}}),
            "/resources/gpus_per_node",
            "is 16",
            "must be from 0 to 8",
        ),
        (
            "a longer time than the partition allows",
            json!({"resources": {"time_hours": 12}}),
            "/resources/time_hours",
            "is 12 hours; partition polar allows 4",
            "Request less, or only partitions that allow it: long",
        ),
        (
            "a deadline that is over",
            json!({"backend_details": {"deadline": "2001-01-01T00:00:00Z"}}),
            "/backend_details/deadline",
            "is over",
            "name a later time, or leave it out",
        ),
        (
            "a partition that does not exist",
            json!({"backend_details": {"partition": "polr"}}),
            "/backend_details/partition",
            "no partition `polr`",
            "its partitions are polar, grizzly, long",
        ),
        (
            "a cluster that does not exist",
            json!({"backend_details": {"cluster_name": "dgx2"}}),
            "/backend_details/cluster_name",
            "\"dgx2\"",
            "the configured clusters are: dgx",
        ),
        (
            "an image in upper case",
            json!({"image": "nvcr.io/NVIDIA/tao:6"}),
            "/image",
            "nvcr.io/NVIDIA/tao:6",
            "allowed are parts of lower-case letters",
        ),
        (
            "an input on the own machine",
            json!({"inputs": ["data/train"]}),
            "/inputs/0",
            "\"data/train\"",
            "name it as lustre:///path",
        ),
        (
            "two numbers that contradict",
            json!({"resources": {"num_gpus": 7, "gpus_per_node": 2}}),
            "/resources/num_gpus",
            "is 7, but gpus_per_node × num_nodes is 2 × 1",
            "give only one of them",
        ),
        (
            "a soft limit above the limit",
            json!({"resources": {"time_hours": 1, "timeout_hours": 2}}),
            "/resources/timeout_hours",
            "is 2 hours, longer than time_hours",
            "at most 1",
        ),
        (
            "a TAO job without its network",
            json!({"command": null, "image": "tao:6", "action": "train"}),
            "/network_arch",
            "is required with action",
            "needs a network_arch",
        ),
        (
            "a variable that belongs to Slurm",
            json!({"docker_env_vars": {"SLURM_JOB_ID": "1"}}),
            "/docker_env_vars/SLURM_JOB_ID",
            "SLURM_",
            "another name",
        ),
    ]
}

fn changed(by: &Value) -> Value {
    let mut job = json!({"command": "nvidia-smi", "resources": {"gpus_per_node": 1, "time_hours": 1}});
    for (field, value) in by.as_object().unwrap() {
        job[field] = value.clone();
    }
    job
}

#[sqlx::test(migrator = "persistence::MIGRATOR")]
async fn every_wrong_job_is_answered_with_the_field_the_value_and_what_to_do(pool: PgPool) {
    let api = TestApi::new(pool);
    learn(&api, PARTITIONS).await;
    let valid = api.post("/jobs/validate", &changed(&json!({}))).await;
    assert_eq!((valid.status.as_u16(), &valid.json()["warnings"]), (200, &json!([])), "{}", valid.text());
    for (what, change, pointer, value, remedy) in wrong_jobs() {
        let answer = api.post("/jobs/validate", &changed(&change)).await;
        let problem = answer.problem(422, "invalid_request");
        let faults = problem["errors"].as_array().unwrap();
        assert_eq!(faults.len(), 1, "{what}: {problem}");
        assert_eq!(faults[0]["pointer"], pointer, "{what}: {problem}");
        let detail = faults[0]["detail"].as_str().unwrap();
        assert!(detail.contains(value) && detail.contains(remedy), "{what}: {detail}");
    }
}

#[sqlx::test(migrator = "persistence::MIGRATOR")]
async fn an_image_file_that_is_not_there_is_found_by_a_live_validation(pool: PgPool) {
    let api = TestApi::new(pool);
    let image = "/lustre/images/none.sqsh";
    *api.ops.trial.lock().unwrap() = Some(TestOnlyAnswer {
        script: Some(TestVerdict::Accepted("sbatch: Job 7 to start".to_owned())),
        missing: vec![image.parse().unwrap()],
        unknown: vec![],
    });
    let answer = api.post("/jobs/validate?live=true", &changed(&json!({"image": image}))).await.json();
    assert_eq!(answer["job"]["required_paths"], json!([image]));
    assert_eq!(answer["live"]["missing_paths"], json!([image]));
    let asked = api.ops.asked.lock().unwrap().concat();
    assert!(asked.contains("/lustre/images/none.sqsh\n"), "{asked}");
}
