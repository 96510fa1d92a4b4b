//! A field that is documented is a field that is read.

use std::collections::BTreeSet;

use serde_json::{Value, json};
use sqlx::PgPool;

use crate::support::TestApi;

/// Requests that have every field between them.
fn requests() -> [Value; 9] {
    let tao = json!({
        "id": "0f8fad5b-d9cb-469f-a165-70867728950e",
        "name": "clip", "labels": {"team": "vision"},
        "image": "registry.example/tao/tao-toolkit:6",
        "network_arch": "classification_pyt", "action": "train",
        "specs": {"train": {"num_epochs": 3}},
        "cloud_metadata": {"aws": {"access_key": "x"}},
        "docker_env_vars": {"WANDB_PROJECT": "x"}, "secret_env_vars": {"HF_TOKEN": "x"},
        "results": [{"name": "loss", "regex": "loss=(.+)", "log": "out", "required": true}],
        "inputs": ["lustre:///lustre/data/a"],
        "resources": {
            "num_nodes": 2, "num_gpus": 16, "gpus_per_node": 8, "max_num_gpus_per_node": 8, "cpus_per_task": 32,
            "time_hours": 2.0, "timeout_hours": 1.5, "master_port": 29600, "tasks_per_node": 1,
            "memory": {"per_node": "64G"}, "gpu_type": "a100", "gres": [{"name": "nvme", "type": null, "count": 1}],
            "constraint": "a100&nvlink", "exclusive": false, "nodelist": "node[01-02]", "exclude": "node03",
            "licenses": "matlab:2", "switches": "1@00:30:00",
        },
        "num_gpu": 16,
        "container": {
            "mounts": ["/lustre", "/data"], "runtime": "pyxis", "use_sqsh": true, "require_sqsh": true, "force_reconvert_latest": true,
            "mount_home": false,
        },
        "retry": {"max_retries": 3}, "use_requeue": false, "timeout_minutes": 90,
        "idle_policy": {"below_percent": 5, "minutes": 60, "action": "pause"},
        "webhook": {"url": "https://example.org/hook", "secret": "whsec_C2FVsBQIhrscChlQIMV+b5sSYspob7oD"},
        "backend_details": {"backend_type": "slurm", "partition": "polar", "cluster_name": "dgx", "account": "vision",
            "qos": "high", "reservation": "course", "nice": 100, "begin": "2030-12-01T08:00:00Z",
            "deadline": "2031-01-01T00:00:00", "comment": "idle-gpu exempt",
            "sbatch_options": {"hint": "nomultithread", "contiguous": true, "mem-bind": false},
        },
    });
    let array = |array: Value| json!({"command": "true", "array": array});
    [
        tao,
        json!({"command": "true", "resources": {"memory": {"per_cpu": "1G", "per_gpu": null}}}),
        array(json!({"values": [{"lr": 0.1}], "max_parallel": 2})),
        array(json!({"matrix": {"lr": [0.1, 0.2]}})),
        array(json!({"indices": "0-9"})),
        json!({
            "command": "true", "launcher": {"kind": "torchrun", "nproc_per_node": 2}, "setup": ["module load cuda"],
            "files": {"config/a.json": {"json": [1]}}, "workdir": "/lustre/code",
            "restart": {
                "on": ["timeout", "preempted"], "exit_codes": [75], "max_infrastructure": 3, "max_total_hours": 72.0,
                "delay_seconds": 60,
            },
        }),
        json!({"command": "true", "restart": {"on": ["timeout", "launch_failure"], "prequeue": true}}),
        json!({"command": "true", "progress": {"file": "progress", "total": 200}}),
        json!({
            "needs": [{"job": "0f8fad5b-d9cb-469f-a165-70867728950e", "when": "finished", "name": "first"}],
            "services": [{"name": "model", "command": "serve", "nodes": 1}],
            "steps": [{"name": "ask", "command": "ask", "launcher": "per_node", "timeout_minutes": 5}],
        }),
    ]
}

/// Those that come back under the name under which they were given.
const SHOWN: [&str; 42] = [
    "/restart/prequeue",
    "/restart/exit_codes",
    "/restart/max_total_hours",
    "/restart/delay_seconds",
    "/restart/on",
    "/needs",
    "/array/max_parallel",
    "/id",
    "/name",
    "/labels",
    "/network_arch",
    "/action",
    "/specs",
    "/command",
    "/docker_env_vars",
    "/resources/num_nodes",
    "/resources/gpus_per_node",
    "/resources/cpus_per_task",
    "/resources/time_hours",
    "/resources/timeout_hours",
    "/container/mounts",
    "/backend_details/partition",
    "/backend_details/cluster_name",
    "/resources/tasks_per_node",
    "/resources/memory/per_node",
    "/resources/gpu_type",
    "/resources/gres",
    "/resources/constraint",
    "/resources/exclusive",
    "/resources/nodelist",
    "/resources/exclude",
    "/resources/licenses",
    "/resources/switches",
    "/backend_details/account",
    "/backend_details/qos",
    "/backend_details/reservation",
    "/backend_details/nice",
    "/backend_details/begin",
    "/backend_details/deadline",
    "/backend_details/comment",
    "/backend_details/sbatch_options",
    "/resources/memory/per_cpu",
];

/// The pointers of all fields of an object, and of the objects in it whose fields are fixed.
fn fields(document: &Value, schema: &Value, at: &str) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    for (name, field) in schema["properties"].as_object().unwrap() {
        let at = format!("{at}/{name}");
        let parts = field["oneOf"].as_array().map_or(&[][..], Vec::as_slice).iter().chain([field]);
        for place in parts.filter_map(|part| part["$ref"].as_str()) {
            let referred = document.pointer(place.trim_start_matches('#')).unwrap();
            if referred["properties"].is_object() {
                found.extend(fields(document, referred, &at));
            }
        }
        found.insert(at);
    }
    found
}

#[sqlx::test(migrator = "persistence::MIGRATOR")]
async fn every_field_of_the_document_is_taken(pool: PgPool) {
    let api = TestApi::new(pool);
    let document = api.get("/openapi.json").await.json();
    let documented = fields(&document, &document["components"]["schemas"]["JobRequest"], "");
    let sent = requests();
    let missing: Vec<_> =
        documented.iter().filter(|at| sent.iter().all(|body| body.pointer(at).is_none())).collect();
    assert!(documented.len() > 30 && missing.is_empty(), "send these too: {missing:?}");
    for body in &sent {
        let answer = api.post("/jobs", body).await;
        assert_eq!(answer.status, 201, "{}", answer.text());
        let job = answer.json();
        for at in SHOWN.iter().filter(|at| body.pointer(at).is_some()) {
            assert_eq!(job.pointer(at), body.pointer(at), "{at}");
        }
    }
}
