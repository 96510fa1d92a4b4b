//! Evaluations with model servers of their own, on a real Slurm and with a real `HAProxy`. Where faults are injected the model is a stand-in:
//! it speaks the protocol of model servers and answers at once. `nemo_evaluator` has a real server and a real evaluator.
//!
//! The machines of Slurm 22.05 have the programs of the host. The root file system of 24.11 has no Python.

mod nemo_evaluator;

use std::process::Command;

use serde_json::{Value, json};

use crate::{
    environments::{Process, processes},
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
                "name": "model", "command": serve, "env": {"LOADS": "4"}, "replicas": 2, "balance": {},
                "ready": {"http": "/v1/models", "body": {"pattern": "\"tiny\""}, "interval_seconds": 1, "timeout_minutes": 5},
            },
            {"name": "judge", "command": serve, "ready": {"http": "/health", "interval_seconds": 1, "timeout_minutes": 5}},
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

#[test]
fn copies_behind_haproxy_answer_an_evaluation_to_its_end() {
    let service = Service::start();
    if !are_installed(&service) {
        return;
    }
    let id = service.submit(&evaluation(200));
    let ended = service.wait_ended(&id);
    let errors = service.get(&format!("/jobs/{id}/logs?tail=100&stream=err")).text;
    assert_eq!(ended["status"], "Done", "{ended}\n{errors}\n{}", log(&service, &id, "model"));
    let results = service.get(&format!("/jobs/{id}/results")).json();
    let scores = &results[0]["value"];
    assert_eq!(scores["score"], 1.0, "{results}");
    assert_eq!((&ended["progress"]["done"], &ended["progress"]["percent"]), (&json!(200.0), &json!(100)));
    let by: Vec<u64> = scores["by"].as_object().unwrap().values().filter_map(Value::as_u64).collect();
    assert!(by.len() == 2 && by.iter().all(|count| *count > 20), "both copies have answered: {scores}");
    let answers = |role| log(&service, &id, role).matches("answers ").count();
    assert_eq!((answers("model-0") + answers("model-1"), answers("judge")), (200, 200));
    let requests = log(&service, &id, "model");
    assert_eq!(requests.matches("POST /v1/chat/completions").count(), 200, "{requests}");
    for name in ["model-0", "model-1", "model", "judge"] {
        assert!(errors.contains(&format!("the service {name} is ready after ")), "{errors}");
    }
    is_gone(&id);
}

/// Kills a process of the job whose command line has this text, and its environment this variable.
fn kill(id: &str, text: &str, variable: &str) {
    let is_it = |process: &Process| {
        process.command_line.contains(text) && process.environment.split('\0').any(|one| one == variable)
    };
    let found = processes(id).into_iter().find(is_it).unwrap_or_else(|| panic!("{text} runs"));
    let killed = Command::new("kill").args(["-KILL", &found.id]).status();
    assert!(killed.is_ok_and(|status| status.success()));
}

#[test]
fn a_copy_that_is_killed_starts_again_and_the_evaluation_goes_on() {
    let service = Service::start();
    if !are_installed(&service) {
        return;
    }
    let mut job = evaluation(400);
    job["services"][0]["max_restarts"] = 2.into();
    let id = service.submit(&job);
    service
        .wait(&id, "an answer", |status| status["progress"]["done"].as_f64().is_some_and(|done| done > 0.0));
    kill(&id, "server.py", "LOADS=4");
    let ended = service.wait_ended(&id);
    let errors = service.get(&format!("/jobs/{id}/logs?tail=100&stream=err")).text;
    assert_eq!(ended["status"], "Done", "{ended}\n{errors}\n{}", log(&service, &id, "model"));
    assert!(errors.contains("it starts again, for time 1 of at most 2"), "{errors}");
    assert_eq!(service.get(&format!("/jobs/{id}/results")).json()[0]["value"]["score"], 1.0);
    is_gone(&id);
}

#[test]
fn an_evaluation_ends_with_haproxy_and_says_so() {
    let service = Service::start();
    if !are_installed(&service) {
        return;
    }
    let id = service.submit(&evaluation(100_000));
    service
        .wait(&id, "an answer", |status| status["progress"]["done"].as_f64().is_some_and(|done| done > 0.0));
    kill(&id, "haproxy -db", &format!("TAO_API_JOB_ID={id}"));
    let ended = service.wait_ended(&id);
    let message = ended["message"].as_str().unwrap();
    assert!(message.starts_with("The service model has ended with code 137 (Slurm: FAILED"), "{message}");
    assert!(message.contains("Last lines of model/0."), "{message}");
    is_gone(&id);
}
