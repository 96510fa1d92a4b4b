//! Examples of request bodies. A test sends each of them.

use serde_json::{Value, json};

use super::operations;

/// A name, a summary and the body.
type Example = (&'static str, &'static str, Value);

fn of(operation: &str) -> Vec<Example> {
    match operation {
        "create_job" | "validate_job" => vec![training(), plain()],
        "cancel_job" => vec![("tasks", "Cancel some tasks of an array", json!({"tasks": "3,7-9"}))],
        "retry_job" => vec![
            (
                "secrets",
                "Send the secrets of a finished job again",
                json!({"secret_env_vars": {"HF_TOKEN": "hf_example"}}),
            ),
            (
                "tasks",
                "Retry some tasks of an array",
                json!({"tasks": "3,7-9", "secret_env_vars": {"HF_TOKEN": "hf_example"}}),
            ),
        ],
        "create_pipeline" => vec![pipeline()],
        "retry_pipeline" => vec![(
            "secrets",
            "Retry the failed jobs; a job has a secret",
            json!({"jobs": {"train": {"secret_env_vars": {"HF_TOKEN": "hf_example"}}}}),
        )],
        "post_container_job" => vec![container_job()],
        "pause_container_job" => {
            vec![(
                "training",
                "A job that was posted before",
                json!({"job_id": "0f8fad5b-d9cb-469f-a165-70867728950e"}),
            )]
        }
        "create_token" => vec![(
            "read",
            "A token that reads the jobs of one owner",
            json!({"owner": "vision", "scopes": ["read"]}),
        )],
        "create_cluster" => vec![cluster(true)],
        "replace_cluster" => vec![cluster(false)],
        "put_enroot_credentials" => vec![(
            "ngc",
            "The API key of NGC",
            json!({"machine": "nvcr.io", "login": "$oauthtoken", "password": "nvapi-example"}),
        )],
        _ => Vec::new(),
    }
}

fn training() -> Example {
    let job = json!({
        "name": "clip-finetune", "labels": {"team": "vision"},
        "image": "/lustre/images/tao-toolkit.sqsh",
        "network_arch": "classification_pyt", "action": "train",
        "specs": {"train": {"num_epochs": 3, "dataset": "lustre:///lustre/data/a"}},
        "docker_env_vars": {"WANDB_PROJECT": "clip"}, "secret_env_vars": {"HF_TOKEN": "hf_example"},
        "inputs": ["lustre:///lustre/data/a/annotations.json"],
        "resources": {"gpus_per_node": 4, "time_hours": 1},
    });
    ("training", "A TAO training. Its image file and its data must exist on the cluster", job)
}

fn pipeline() -> Example {
    let resources = json!({"num_gpus": 0, "time_hours": 0.1});
    let job =
        |command: &str, needs: Value| json!({"command": command, "needs": needs, "resources": resources});
    let jobs = json!({
        "prep": job("./prep.sh", json!([])),
        "train": job("./train.sh $NEEDS_PREP_DIR", json!([{"job": "prep"}])),
        "clean-up": job("./clean-up.sh", json!([{"job": "train", "when": "finished"}])),
    });
    let pipeline = json!({"name": "nightly", "labels": {"team": "vision"}, "jobs": jobs});
    ("train", "A training after its preparation, and a clean-up whatever happened", pipeline)
}

fn plain() -> Example {
    let job = json!({"command": "nvidia-smi || echo no GPU here", "resources": {"gpus_per_node": 1, "time_hours": 0.1}});
    ("command", "A plain command on one GPU", job)
}

fn container_job() -> Example {
    let job = json!({
        "neural_network_name": "dino", "action_name": "train",
        "specs": {"results_dir": "/results/0f8fad5b-d9cb-469f-a165-70867728950e", "train": {"num_gpus": 2}},
        "cloud_metadata": {}, "docker_env_vars": {"WANDB_PROJECT": "clip"},
        "job_id": "0f8fad5b-d9cb-469f-a165-70867728950e", "statefulset_replicas": 1,
    });
    ("training", "A training as TAO's client sends it", job)
}

fn cluster(is_named: bool) -> Example {
    let host_key = "login1.example.org ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIG5vdCBhIGtleSBvZiBhbnkgaG9zdCBvbiB0aGlzIGVhcnRo";
    let mut cluster = json!({
        "user": "svc-tao", "hosts": ["login1.example.org"], "ssh_key": "dgx", "host_keys": [host_key],
        "account": "vision", "partitions": ["polar", "polar3"],
    });
    if is_named {
        cluster["name"] = "dgx-2".into();
    }
    ("cluster", "A cluster with one login host, and an SSH key from the server's key directory", cluster)
}

/// Adds them to the request bodies.
pub(super) fn put(document: &mut Value) {
    for operation in operations(document) {
        let examples = of(operation["operationId"].as_str().unwrap_or_default());
        let contents = operation.pointer_mut("/requestBody/content").and_then(Value::as_object_mut);
        for content in contents.into_iter().flat_map(|contents| contents.values_mut()) {
            for (name, summary, value) in &examples {
                content["examples"][name] = json!({"summary": summary, "value": value});
            }
        }
    }
}
