//! Evaluations with model servers of their own, on a real Slurm and with a real `HAProxy`. Where faults are injected the model is a stand-in:
//! it speaks the protocol of model servers and answers at once. `nemo_evaluator` has a real server and a real evaluator.
//!
//! The machines of Slurm 22.05 have the programs of the host. The root file system of 24.11 has no Python.

mod faults;
mod nemo_evaluator;
mod resumed;

use serde_json::{Value, json};

use crate::{
    bars::size,
    launchers::{are_installed, is_gone},
    service::Service,
};

const SERVER: &str = include_str!("evaluation/server.py");
const EVALUATE: &str = include_str!("evaluation/evaluate.py");

/// Two copies of a model behind `HAProxy` and a judge, on three nodes, and the evaluation of so many questions.
fn evaluation(count: u32) -> Value {
    let serve = "exec python3 $TAO_JOB_FILES/server.py";
    json!({
        "services": [
            {
                "name": "model", "command": serve, "env": {"WHO": "model", "LOADS": "2"}, "replicas": 2, "balance": {},
                "ready": {"http": "/v1/models", "body": {"pattern": "\"tiny\""}, "interval_seconds": 1, "timeout_minutes": 5},
            },
            {"name": "judge", "command": serve, "env": {"WHO": "judge"}, "ready": {"http": "/health", "interval_seconds": 1, "timeout_minutes": 5}},
        ],
        "steps": [{"name": "evaluate", "nodes": 1, "command": "exec python3 $TAO_JOB_FILES/evaluate.py", "env": {"COUNT": count.to_string()}}],
        "files": {"server.py": {"text": SERVER}, "evaluate.py": {"text": EVALUATE}},
        "results": [{"name": "scores", "json_file": "scores.json", "required": true}],
        "progress": {"file": "progress", "total": count},
        // The sandbox ends a step that uses more memory than its job asks for.
        "resources": {"num_nodes": 3, "gpus_per_node": 0, "cpus_per_task": 1, "memory": "4G", "time_hours": 0.2},
    })
}

fn log(service: &Service, id: &str, role: &str) -> String {
    service.get(&format!("/jobs/{id}/logs?tail=1000&stream=out&role={role}")).text
}

/// In full size, 50 pairs of jobs. Both jobs of a pair have the same three nodes.
#[test]
fn two_evaluations_with_copies_behind_haproxy_share_their_nodes() {
    let service = Service::start();
    if !are_installed(&service) {
        return;
    }
    for _ in 0..size(1, 50) {
        let ids = [service.submit(&evaluation(200)), service.submit(&evaluation(200))];
        let nodes = ids.each_ref().map(|id| {
            has_its_own_answers(&service, id);
            service.get(&format!("/jobs/{id}/attempts")).json()["attempts"][0]["nodes"].clone()
        });
        assert_eq!(nodes[0], nodes[1]);
        for id in &ids {
            is_gone(id);
        }
    }
}

/// Each question is answered once, by both copies, and judged once, by the servers of the job.
fn has_its_own_answers(service: &Service, id: &str) {
    let ended = service.wait_ended(id);
    let errors = service.get(&format!("/jobs/{id}/logs?tail=100&stream=err")).text;
    assert_eq!(ended["status"], "Done", "{ended}\n{errors}\n{}", log(service, id, "model"));
    let results = service.get(&format!("/jobs/{id}/results")).json();
    let scores = &results[0]["value"];
    assert_eq!(scores["score"], 1.0, "{results}");
    assert_eq!((&ended["progress"]["done"], &ended["progress"]["percent"]), (&json!(200.0), &json!(100)));
    let by: Vec<u64> = scores["by"].as_object().unwrap().values().filter_map(Value::as_u64).collect();
    assert!(by.len() == 2 && by.iter().all(|count| *count > 20), "both copies have answered: {scores}");
    let answers = |role| log(service, id, role).matches("answers ").count();
    assert_eq!((answers("model-0") + answers("model-1"), answers("judge")), (200, 200));
    // HAProxy leaves out a line rather than wait until it is read.
    let requests = log(service, id, "model");
    assert!((180..=200).contains(&requests.matches("POST /v1/chat/completions").count()), "{requests}");
    for name in ["model-0", "model-1", "model", "judge"] {
        assert!(errors.contains(&format!("the service {name} is ready after ")), "{errors}");
    }
}
