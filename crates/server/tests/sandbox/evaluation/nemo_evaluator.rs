//! The evaluator of NVIDIA with its package of lm-evaluation-harness, as `tao-slurm import` has it run, against two copies of llama.cpp's server.

use serde_json::{Value, json};

use super::log;
use crate::{
    launchers::{are_installed, is_gone},
    service::Service,
};

const CONFIG: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/sandbox/evaluation/launcher.yaml");
const SERVER: &str = include_str!("llama_cpp.py");
const TASK: &str = include_str!("capitals.yaml");
/// Where the nodes see what `ci/setup --test` has installed.
const TOOLS: &str = "/run/tao-slurm-sandbox/root/evaluation/bin";
/// The countries that the model knows, and their capitals. It takes that of the last one for Lima.
const CAPITALS: [(&str, &str); 4] =
    [("France", "Paris"), ("Italy", "Rome"), ("Japan", "Tokyo"), ("Cuba", "Havana")];
/// So many that both copies answer.
const QUESTIONS: usize = 100;

/// The questions. Each is another one, because the evaluator asks none twice.
fn questions() -> String {
    let line = |number: usize| {
        let (country, capital) = CAPITALS[number % CAPITALS.len()];
        json!({"question": format!("{number}. What is the capital of {country}"), "answer": capital})
            .to_string()
            + "\n"
    };
    (0..QUESTIONS).map(line).collect()
}

/// The job of the configuration, with the programs of the nodes in the place of images, and the name of its step.
fn imported(service: &Service) -> (Value, String) {
    let import = service.run(&["import", "nemo-evaluator", CONFIG, "--image", "not-used"]);
    assert!(import.status.success(), "{}", String::from_utf8_lossy(&import.stderr));
    let mut job: Value = serde_json::from_slice(&import.stdout).unwrap();
    for list in ["services", "steps"] {
        for program in job[list].as_array_mut().unwrap() {
            let program = program.as_object_mut().unwrap();
            program.retain(|name, _| name != "image" && name != "container");
        }
    }
    job["services"][0]["balance"] = json!({});
    let step = job["steps"][0]["name"].as_str().unwrap().to_owned();
    job["setup"] = json!([format!("export PATH={TOOLS}:$PATH")]);
    for (name, text) in [("llama_cpp.py", SERVER), ("capitals.yaml", TASK), ("capitals.jsonl", &questions())]
    {
        job["files"][name] = json!({"text": text});
    }
    job["resources"]["memory"] = "16G".into();
    job["progress"] = json!({"file": format!("{step}/progress"), "total": QUESTIONS});
    job["results"] = json!([{"name": "score", "regex": r"\|exact_match\|\S*\s*\|\s*([0-9.]+)\|", "component": step, "required": true}]);
    (job, step)
}

#[test]
fn an_imported_evaluation_scores_a_model_of_llama_cpp() {
    let service = Service::start();
    if !are_installed(&service) {
        return;
    }
    let (job, step) = imported(&service);
    let id = service.submit(&job);
    let ended = service.wait_ended(&id);
    let errors = service.get(&format!("/jobs/{id}/logs?tail=100&stream=err")).text;
    assert_eq!(ended["status"], "Done", "{ended}\n{errors}\n{}", log(&service, &id, &step));
    assert_eq!(service.get(&format!("/jobs/{id}/results")).json()[0]["value"], "0.75");
    assert_eq!((&ended["progress"]["done"], &ended["progress"]["percent"]), (&json!(100.0), &json!(100)));
    for name in ["model-0", "model-1"] {
        let requests = service.get(&format!("/jobs/{id}/logs?tail=10000&stream=err&role={name}")).text;
        assert!(requests.contains("processing task"), "{name} has answered: {requests}");
    }
    is_gone(&id);
}
