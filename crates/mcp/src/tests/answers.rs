//! Answers of the API, with the fields that tools read.

use serde_json::{Value, json};

pub(super) const JOB: &str = "01997a5e-7c1b-7c05-9d1e-0c5f3a0b5a11";
pub(super) const NEW: &str = "01997a5e-7c1b-7c05-9d1e-0c5f3a0b5a22";

/// The object with other values for some fields.
pub(super) fn changed(mut object: Value, changes: &Value) -> Value {
    for (name, value) in changes.as_object().unwrap() {
        object[name] = value.clone();
    }
    object
}

pub(super) fn status() -> Value {
    json!({
        "id": JOB, "name": "train", "status": "Running", "phase": "running", "message": "Running on node01.", "pending": null,
        "slurm_job_id": "4711", "slurm_state": "RUNNING", "cluster": "dgx", "partition": "gpu", "nodes": ["node01"], "attempt": 1,
        "retry_count": 0, "failure": null, "progress": {"percent": 12.5, "done": null, "total": null, "message": null}, "tasks": null,
        "created_on": "2026-11-28T00:00:00Z", "started_on": "2026-11-28T00:01:00Z", "finished_on": null,
        "observed_at": "2026-11-28T00:02:00Z", "stale": false, "version": 3
    })
}

pub(super) fn failed() -> Value {
    let failure = json!({"rule": "host-out-of-memory", "category": "host_memory", "node": "node01", "advice": "Ask for more memory."});
    changed(
        status(),
        &json!({"status": "Error", "phase": "ended", "failure": failure, "finished_on": "2026-11-28T01:00:00Z"}),
    )
}

pub(super) fn job(status: Value) -> Value {
    let memory = json!({"per_node": "1G", "per_cpu": null, "per_gpu": null});
    let resources = json!({
        "num_nodes": 1, "gpus_per_node": 1, "total_gpus": 1, "max_num_gpus_per_node": 8, "tasks_per_node": 1, "cpus_per_task": 4,
        "exclusive": false, "time_hours": 1.0, "timeout_hours": 1.0, "master_port": null, "memory": memory, "gpu_type": null,
        "gres": [], "constraint": null, "nodelist": null, "exclude": null, "licenses": null, "switches": null
    });
    let place = json!({
        "backend_type": "slurm", "cluster_name": "dgx", "partition": "gpu", "account": null, "qos": null, "sbatch_options": {},
        "slurm_metadata": {"job_id": "4711"}
    });
    let shown = json!({
        "owner": "ann", "labels": {"team": "vision"}, "image": null, "gpus": 1, "network_arch": null, "action": null, "specs": null,
        "command": "python train.py", "steps": [], "services": [], "launcher": null, "setup": [], "files": [], "workdir": null,
        "docker_env_vars": {}, "secret_env_vars": [], "cloud_metadata": {}, "secret_cloud_metadata": [], "inputs": []
    });
    let rest = json!({
        "array": null, "needs": [], "results": [], "progress_file": null, "progress_total": null, "resources": resources,
        "retry": {"max_retries": 2}, "restart": {"on": ["node_failure"]}, "use_requeue": false, "timeout_minutes": null,
        "container": {"mounts": []}, "backend_details": place
    });
    changed(changed(status, &shown), &rest)
}

pub(super) fn validation() -> Value {
    json!({
        "job": job(status()), "batch_script": "#!/bin/bash\ntrue\n", "submissions": 1, "live": null,
        "warnings": [{"pointer": "/resources", "code": "idle", "detail": "GPUs may be idle."}]
    })
}

pub(super) fn diagnosis() -> Value {
    json!({
        "attempt": 1, "task": 0, "rule": "host-out-of-memory", "category": "host_memory", "why": "the job used more memory than it has",
        "advice": "Ask for more memory.", "node": "node01", "rank": null,
        "first": {"log": "main.err", "offset": 10, "line": "slurmstepd: error: Detected 1 oom_kill event"},
        "followed": [], "has_gaps": false
    })
}

pub(super) fn usage() -> Value {
    json!({"notes": ["At most 1.0 GiB of memory."], "accounted": {"most_memory_mib": 1024}})
}

pub(super) fn partitions() -> Value {
    json!({
        "fetched_on": "2026-11-28T00:00:00Z", "stale": false, "error": null,
        "partitions": [{
            "name": "gpu", "is_default": true, "availability": "up", "time_limit_hours": 4.0, "max_nodes": null, "nodes": 4,
            "nodes_by_state": {"idle": 4}, "gpus_per_node": 8, "gpu_types": ["a100"], "cpus_per_node": 64, "memory_mib_per_node": 100_000
        }]
    })
}

pub(super) fn clusters(names: &[&str]) -> Value {
    let cluster = |name: &&str| json!({"name": name, "is_default": *name == names[0], "state": "ok"});
    json!({"clusters": names.iter().map(cluster).collect::<Vec<_>>()})
}

pub(super) fn preflight() -> Value {
    let check = |id: &str, outcome: &str| json!({"id": id, "subject": null, "outcome": outcome, "observed": "x", "fix": null});
    json!({
        "cluster": "dgx", "outcome": "fail", "checked_on": "2026-11-28T00:00:00Z",
        "checks": [check("ssh", "pass"), check("sbatch", "fail")]
    })
}

pub(super) fn search() -> Value {
    json!({
        "attempt": 1, "complete": false,
        "hits": [{"log": "main.err", "offset": 10, "excerpt": "out of memory"}],
        "logs": [{"log": "main.err", "size": 100, "from": 0, "to": 50, "complete": false}]
    })
}

/// An answer for each path that a tool asks for.
pub(super) fn all() -> Vec<(String, Value)> {
    let path = |rest: &str| format!("/jobs/{JOB}{rest}");
    vec![
        ("GET /me".to_owned(), json!({"owner": "ann"})),
        ("GET /jobs".to_owned(), json!({"jobs": [job(status())], "next_page_token": "next"})),
        ("POST /jobs".to_owned(), changed(job(status()), &json!({"id": NEW, "status": "Pending"}))),
        ("POST /jobs/validate".to_owned(), validation()),
        (format!("GET {}", path("")), job(failed())),
        (format!("GET {}", path("/status")), failed()),
        (format!("GET {}", path("/diagnosis")), diagnosis()),
        (format!("GET {}", path("/usage")), usage()),
        (format!("GET {}", path("/logs/search")), search()),
        (format!("POST {}", path("/cancel")), changed(status(), &json!({"status": "Canceling"}))),
        (format!("POST {}", path("/retry")), changed(status(), &json!({"status": "Pending"}))),
        ("GET /clusters".to_owned(), clusters(&["dgx"])),
        ("GET /clusters/dgx/partitions".to_owned(), partitions()),
        ("POST /clusters/dgx/preflight".to_owned(), preflight()),
    ]
}

/// Arguments for each tool, and for each way of reading a log.
pub(super) fn every_call() -> Vec<(&'static str, Value)> {
    let job = json!({"job_id": JOB});
    vec![
        ("submit_job", json!({"job": {"command": "true"}})),
        ("get_status", job.clone()),
        ("get_logs", job.clone()),
        ("get_logs", json!({"job_id": JOB, "search": "x"})),
        ("get_logs", json!({"job_id": JOB, "offset": 0})),
        ("cancel_job", job.clone()),
        ("retry_job", job.clone()),
        ("retry_job", json!({"job_id": JOB, "changes": {"resources": {"memory": "2G"}}})),
        ("explain_job", job),
        ("list_jobs", json!({})),
        ("list_partitions", json!({})),
        ("preflight", json!({})),
    ]
}
