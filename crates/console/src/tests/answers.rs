//! An answer of the API for each call, with every field that a page reads.

use serde_json::{Value, json};

use super::fake_api::JOB;

const T0: &str = "2026-11-28T00:00:00Z";
const T1: &str = "2026-11-28T00:30:00Z";
pub(super) const PIPELINE: &str = "01997a5e-0000-7c05-9d1e-0c5f3a0b5a22";

/// A job with all its fields.
pub(super) fn job() -> Value {
    let (Value::Object(mut job), Value::Object(details)) = (summary(), details()) else { unreachable!() };
    job.extend(details);
    Value::Object(job)
}

fn summary() -> Value {
    json!({
        "id": JOB, "name": "a name", "status": "Error", "phase": "ended", "message": "It failed.",
        "pending": {"reason": "Priority", "meaning": "m", "held_by": "priority", "limit": "l", "advice": "a", "needs_action": true, "queued_on": T0, "estimated_start_on": T1},
        "slurm_job_id": "4711", "slurm_state": "FAILED", "cluster": "dgx", "partition": "polar", "nodes": ["node01"], "attempt": 2,
        "progress": {"epoch": 1, "max_epoch": 3, "percent": 33, "done": 1.0, "total": 3.0, "eta": "0:10:00", "message": "epoch 1", "metrics": {"loss": 0.5, "note": "n"}},
        "tasks": {"total": 3, "pending": 0, "running": 0, "done": 1, "error": 2, "canceled": 0},
        "created_on": T0, "submitted_on": T0, "started_on": T0, "finished_on": T1, "observed_at": T1, "stale": true,
        "owner": "ann", "labels": {"team": "vision"}, "image": "nvcr.io/x", "gpus": 16, "gpu_percent": 40.4,
        "failure": {"rule": "python-error", "advice": "look"}, "network_arch": null, "action": null,
    })
}

/// What the job uses.
pub(super) fn usage() -> Value {
    let gpu = json!({"node": "node01", "index": 3, "percent": 40.4, "most_percent": 99, "most_memory_mib": 2048, "memory_mib": 81_920});
    let series = json!({"times": [T0, T1], "percent": [30.0, 50.5]});
    let accounted = json!({
        "runs": 2, "seconds": 3720, "gpu_seconds": 29_880, "cpu_seconds": 7440, "cpu_seconds_used": 930, "most_memory_mib": 61_849,
    });
    json!({
        "notes": ["1 GPU, 40 % used on average."], "measured": {"attempt": 2, "gpus": [gpu], "series": series},
        "accounted": accounted,
    })
}

fn details() -> Value {
    let component = json!({
        "name": "score", "command": "score", "first_node": 0, "nodes": 1, "with_previous": false, "image": "i", "port": 8000,
        "ready": {"http": "/health", "tcp": false, "file": "f", "log_pattern": "p", "timeout_seconds": 60},
    });
    json!({
        "specs": {"lr": "0.1"}, "command": "python train.py", "steps": [component], "services": [component], "setup": ["module load"],
        "files": ["config.yaml"], "workdir": "/w", "docker_env_vars": {"A": "b"}, "secret_env_vars": ["HF_TOKEN"], "inputs": ["/data"],
        "array": {"tasks": 3, "indices": "0-2", "max_parallel": 2}, "needs": [need()], "pipeline": {"id": PIPELINE, "name": "train"},
        "results": [{"name": "accuracy"}],
        "resources": {"num_nodes": 2, "gpus_per_node": 8, "total_gpus": 16, "cpus_per_task": 4, "time_hours": 1.5, "gpu_type": "a100"},
        "retry": {"max_retries": 10},
        "backend_details": {"partition": "polar", "cluster_name": "dgx", "account": "ml", "qos": "normal", "slurm_metadata": {"job_dir": "/lustre/me"}},
        "warnings": [{"pointer": "/resources", "detail": "odd"}], "attempt_details": attempt(),
    })
}

fn need() -> Value {
    json!({"name": "prep", "job": JOB, "when": "succeeded"})
}

fn attempt() -> Value {
    json!({
        "number": 2, "slurm_job_id": "4711", "slurm_state": "FAILED", "exit_code": 1, "exit_signal": 9, "nodes": ["node01"], "partition": "polar",
        "created_on": T0, "submitted_on": T0, "started_on": T0, "ended_on": T1, "requeues": 1, "excluded_nodes": ["node07"],
        "outcome": "error", "concluded_on": T1, "outcome_reason": "the program failed", "rule": "python-error", "matched_line": "ValueError: x",
    })
}

fn cluster() -> Value {
    json!({
        "name": "dgx", "is_default": true, "state": "ok", "unavailable": "why", "user": "me",
        "login_hosts": [{"host": "login1", "state": "down", "since": T0, "last_error": "refused", "next_attempt_on": T1}],
        "breaker": "open", "base_results_dir": "/lustre/me",
        "poll": {"polled_on": T0, "interval_seconds": 10.0, "failures": 1, "error": "timeout", "active_jobs": 3, "missing_jobs": 1, "stale": true},
        "rpc_budget": {"burst": 40, "per_minute": 4, "left": -1, "spent_total": 100},
        "orphans": {"count": 1, "jobs": [{"slurm_job_id": "1", "slurm_job_name": "tao-job", "slurm_state": "RUNNING", "first_seen_on": T0, "message": "old"}]},
        "ssh": {"sessions_open": 2, "connects_total": 3, "commands_total": 100, "failures_total": 1},
    })
}

fn pipeline() -> Value {
    json!({
        "id": PIPELINE, "name": "nightly", "owner": "ann", "status": "Running", "created_on": T0,
        "jobs_by_status": {"total": 2, "pending": 1, "running": 0, "done": 0, "error": 1, "canceled": 0, "skipped": 0},
    })
}

/// The path of each call with its answer.
fn found() -> Value {
    json!({
        "attempt": 2,
        "hits": [{"offset": 70, "excerpt": "an error here", "match_start": 3, "match_length": 5}],
        "logs": [{"size": 4096, "to": 71, "complete": false}],
    })
}

pub(super) fn all() -> Vec<(String, Value)> {
    let of_job = |rest: &str| format!("/jobs/{JOB}{rest}");
    let task = json!({
        "task": 1, "status": "error", "parameters": {"lr": 0.1, "word": "w"}, "attempt": 1, "slurm_job_id": "4711_1", "nodes": ["node01"],
        "exit_code": 7, "message": "failed", "started_on": T0, "ended_on": T1,
    });
    let mut whole_pipeline = pipeline();
    whole_pipeline["jobs"] = json!([{"name": "train", "id": JOB, "status": "Running", "message": "runs", "skipped": false, "needs": [need()], "started_on": T0, "finished_on": null}]);
    let delivery = json!({"seq": 1, "state": "dead", "attempts": 3, "created_at": T0, "last_attempt_at": T0, "delivered_at": T1, "response_status": 500, "error": "no"});
    let status = json!({"status": "Canceling", "message": "It will be canceled."});
    let token = json!({"id": PIPELINE, "name": "ci", "owner": "ann", "scopes": ["read"], "state": "active", "created_at": T0, "expires_at": T1, "last_used_at": T0});
    vec![
        ("/me".into(), me(&["read", "write", "admin"])),
        ("/tokens".into(), json!({"tokens": [token], "token": "tsl_new", "owner": "ann"})),
        ("/jobs".into(), json!({"jobs": [job()], "next_page_token": "next", "facets": facets()})),
        (of_job(""), job()),
        (of_job("/diagnosis"), diagnosis()),
        (
            of_job("/metrics"),
            json!({"series": [{"name": "loss", "attempt": 1, "axis": "epoch", "x": [1.0, 2.0], "values": [0.5, 0.25], "not_finite": 1}], "truncated": true}),
        ),
        (of_job("/logs/search"), found()),
        (of_job("/usage"), usage()),
        (of_job("/attempts"), json!({"attempts": [attempt(), attempt()]})),
        (of_job("/tasks"), json!({"tasks": [task], "next_page_token": null})),
        (
            of_job("/results"),
            json!([{"task": 1, "name": "accuracy", "value": {"top1": 0.9, "text": "t"}, "problem": null}, {"task": 2, "name": "accuracy", "value": null, "problem": "none"}]),
        ),
        (
            of_job("/timeline"),
            json!({"entries": [{"class": "submit", "attempt": 1, "host": "login1", "started_on": T0, "duration_ms": 12, "result": "ok", "bytes": 2048, "jobs": 1, "outcome": "submitted"}], "next_page_token": null}),
        ),
        (
            of_job("/events"),
            json!({"events": [
            {"seq": 1, "at": T0, "kind": "transition", "attempt": 1, "file": null, "data": {"status": "Error", "message": "failed"}},
            {"seq": 2, "at": T0, "kind": "status", "attempt": 1, "file": "status.json", "data": {"status": "RUNNING"}},
            {"seq": 3, "at": T0, "kind": "orphan", "attempt": 1, "file": null, "data": {"message": "an orphan"}},
        ], "next_after": 3}),
        ),
        (
            of_job("/webhook"),
            json!({"url": "https://hook.example", "pending": 1, "dead": 1, "next_attempt_at": T1, "deliveries": [delivery]}),
        ),
        (of_job("/cancel"), status.clone()),
        (of_job("/retry"), status),
        (
            "/jobs/validate".into(),
            json!({"job": job(), "batch_script": "#!/bin/bash", "submissions": 2, "warnings": [{"pointer": "/x", "detail": "odd"}],
            "live": {"accepted": false, "sbatch_output": "refused", "missing_paths": ["/a"], "unknown_paths": ["/b"]}}),
        ),
        ("/stats".into(), stats()),
        ("/pipelines".into(), json!({"pipelines": [pipeline()], "next_page_token": null})),
        (format!("/pipelines/{PIPELINE}"), whole_pipeline),
        (
            "/clusters".into(),
            json!({"clusters": [cluster(), cluster()], "unusable": [{"name": "old", "reason": "invalid"}]}),
        ),
        ("/clusters/dgx".into(), cluster()),
        (
            "/clusters/dgx/partitions".into(),
            json!({"fetched_on": T0, "stale": true, "error": "timeout", "partitions": [{
                "name": "polar", "is_default": true, "availability": "up", "time_limit": "4:00:00", "max_nodes": 8, "nodes": 4, "nodes_by_state": {"idle": 4},
                "gpus_per_node": 8, "gpu_types": ["a100"], "cpus_per_node": 64, "memory_mib_per_node": 512_000,
            }]}),
        ),
        (
            "/clusters/dgx/preflight".into(),
            json!({"outcome": "warn", "checked_on": T0, "checks": [{"id": "login", "subject": "login1", "outcome": "warn", "observed": "slow", "fix": "look"}]}),
        ),
    ]
}

fn facets() -> Value {
    let of = |values: [&str; 2]| json!([{"value": values[0], "jobs": 3}, {"value": values[1], "jobs": 1}]);
    json!({
        "status": of(["Error", "Canceling"]), "cluster": of(["dgx", "b"]), "owner": of(["ann", "bob"]), "partition": of(["polar", "c"]),
        "rule": of(["python-error", "oom"]),
    })
}

/// Why the job failed.
pub(super) fn diagnosis() -> Value {
    json!({
        "attempt": 1, "task": 2, "rule": "python-error", "category": "code", "why": "an error in the program", "advice": "look", "node": "node01", "rank": 3,
        "first": {"log": "main.err", "offset": 7, "line": "ValueError: x"},
        "followed": [{"rule": "peer-closed", "log": "policy/0.out", "offset": 9, "line": "closed"}], "has_gaps": true,
    })
}

/// Figures: of two groups, one of which is of the jobs without a value, and of two days.
fn stats() -> Value {
    let figures = |name: &str, value: Value, done: u32, error: u32| {
        json!({
            name: value, "submitted": 7, "ended": {"done": done, "error": error, "canceled": 1}, "success_rate": 0.75,
            "queue_wait_seconds": {"runs": 9, "p50": 62.5, "p90": 3600.0}, "gpu_hours": 96.54,
        })
    };
    json!({
        "since": T0, "until": T1, "totals": figures("totals", Value::Null, 3, 1), "now": [{"status": "Running", "jobs": 2}],
        "groups": [figures("value", json!("vision"), 3, 1), figures("value", Value::Null, 0, 2), figures("value", json!("speech"), 0, 5)],
        "groups_truncated": true,
        "buckets": [figures("start", json!(T0), 3, 1), figures("start", json!(T1), 0, 0)],
    })
}

/// A caller with these scopes.
pub(super) fn me(scopes: &[&str]) -> Value {
    json!({"owner": "ann", "scopes": scopes, "authentication": "token", "expires_at": T1})
}

/// The address of every page that is read.
pub(super) fn pages() -> Vec<String> {
    let job = |rest: &str| format!("/ui/jobs/{JOB}{rest}");
    vec![
        "/ui/jobs?status=Error&label=team:vision".into(),
        job(""),
        job("/tasks"),
        job("/attempts"),
        job("/timeline"),
        job("/events"),
        job("/results"),
        job("/spec"),
        job("/script"),
        job("/webhook"),
        job("/logs"),
        job("/logs?q=error"),
        "/ui/access".into(),
        "/ui/clusters".into(),
        "/ui/clusters/dgx".into(),
        "/ui/pipelines".into(),
        format!("/ui/pipelines/{PIPELINE}"),
        "/ui/usage?window=30&group_label=team&label=team:vision".into(),
        "/ui/new".into(),
        format!("/ui/new?from={JOB}"),
    ]
}

/// The actions that an address with `{action}` knows.
const ACTIONS: [(&str, &[&str]); 2] = [
    ("/ui/jobs/{id}/do/{action}", &["cancel", "retry", "pause", "resume", "delete", "redeliver"]),
    ("/ui/pipelines/{id}/do/{action}", &["cancel", "retry"]),
];

/// The paths of an address, with these answers' ids and names in the place of its parameters.
pub(super) fn filled(address: &str) -> Vec<String> {
    let id = if address.starts_with("/ui/jobs/") { JOB } else { PIPELINE };
    let path = address.replace("{id}", id).replace("{name}", "dgx").replace("{hash}", "x");
    let known = ACTIONS.iter().find(|(of, _)| *of == address).map(|(_, actions)| *actions);
    let paths: Vec<_> = match known {
        Some(actions) => actions.iter().map(|action| path.replace("{action}", action)).collect(),
        None => vec![path],
    };
    assert!(
        !paths.iter().any(|path| path.contains('{')),
        "{address} has a parameter that this test does not know"
    );
    paths
}
