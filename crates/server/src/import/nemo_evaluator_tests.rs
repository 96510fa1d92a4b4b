use std::{env, fs, path::PathBuf};

use test_case::test_case;

use super::*;

fn directory() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../deploy/examples/nemo-evaluator")
}

fn import(file: Value, form: Form) -> anyhow::Result<Imported> {
    let host = |name: &str| (name == "HF_TOKEN").then(|| "hf_example".to_owned());
    let mut images = vec![(None, "/lustre/images/lm-eval.sqsh".to_owned())];
    if file.to_string().contains("AIME_2025") {
        images.push((Some("AIME_2025".to_owned()), "/lustre/images/aime.sqsh".to_owned()));
    }
    nemo_evaluator(file, &Options { form, changes: Vec::new(), images, host: &host })
}

fn example() -> Value {
    serde_saphyr::from_str(&fs::read_to_string(directory().join("run.yaml")).unwrap()).unwrap()
}

/// With `UPDATE_EXAMPLES=1` the files are written anew.
#[test_case(Form::Job, "one-job.json"; "one job")]
#[test_case(Form::Pipeline, "pipeline.json"; "a pipeline")]
fn the_example_becomes_its_requests(form: Form, file: &str) {
    let imported = import(example(), form).unwrap();
    let text = serde_json::to_string_pretty(&imported.request).unwrap() + "\n";
    let path = directory().join(file);
    #[expect(clippy::disallowed_methods, reason = "whoever runs the tests asks for it")]
    if env::var("UPDATE_EXAMPLES").is_ok() {
        fs::write(&path, &text).unwrap();
    }
    assert_eq!(fs::read_to_string(path).unwrap(), text);
    let left_out: Vec<&str> = imported.left_out.iter().filter_map(|text| text.split(':').next()).collect();
    let of_all = ["gsm8k_cot_instruct", "AIME_2025"];
    let of_form: &[&str] =
        if form == Form::Job { &["execution.walltime", "execution.auto_export"] } else { &["export"] };
    assert_eq!(left_out, [&of_all[..], of_form].concat());
}

#[test_case("/execution/type", json!("local"), "the execution is `local`"; "another executor")]
#[test_case("/execution/walltime", json!("4h"), "the time 4h must be hours, minutes and seconds"; "a time")]
#[test_case("/execution/num_nodes", json!(3), "cannot be shared by 2 instances"; "nodes")]
#[test_case("/execution/gres", json!("mps:50"), "`execution.gres` is mps:50"; "no gpus")]
#[test_case("/execution/mounts", json!({"evaluation": {"./cache": "/cache"}}), "the relative path ./cache; give its absolute path"; "a relative path")]
#[test_case("/execution/account", json!("???"), "`execution.account` is not set"; "no account")]
#[test_case("/deployment/env_vars/HF_TOKEN", json!("host:OTHER"), "the variable OTHER, for HF_TOKEN, is not set here"; "a variable")]
#[test_case("/deployment/env_vars/HF_TOKEN", json!("HF_TOKEN"), "without `lit:`, `host:` or `runtime:`"; "no prefix")]
#[test_case("/execution/walltime", json!("00:99999999:00"), "the time 00:99999999:00 is too long"; "a long time")]
#[test_case("/evaluation/tasks", json!([{"container": "x"}]), "a task without a name"; "a task without a name")]
#[test_case("/evaluation/tasks", json!([]), "`evaluation.tasks` has no task"; "no task")]
fn what_cannot_be_imported_says_why(at: &str, value: Value, part: &str) {
    let mut file = example();
    *file.pointer_mut(at).unwrap() = value;
    let error = import(file, Form::Job).unwrap_err().to_string();
    assert!(error.contains(part), "{error}");
}

#[test_case("none"; "no model of its own")]
#[test_case("sglang"; "a model of another kind")]
#[test_case("vllm_ray"; "a model on several nodes")]
fn a_judge_goes_with_any_deployment(kind: &str) {
    let file = json!({
        "defaults": [{"execution": "slurm/default"}, {"deployment": kind}, "deployment/vllm@auxiliary_deployments.judge"],
        "execution": {"account": "ml", "walltime": "1-00:00:00"},
        "deployment": {"served_model_name": "m", "hf_model_handle": "org/m"},
        "auxiliary_deployments": {"judge": {"served_model_name": "j", "hf_model_handle": "org/j", "port": 8001}},
        "target": {"api_endpoint": {"url": "https://models.example/v1/chat/completions", "model_id": "m"}},
        "evaluation": {"tasks": [{"name": "lm-evaluation-harness.mmlu_pro_instruct"}]},
    });
    let images = vec![(None, "image".to_owned())];
    let host = |_: &str| None;
    let imported =
        nemo_evaluator(file, &Options { form: Form::Job, changes: Vec::new(), images, host: &host }).unwrap();
    let services = imported.request["services"].as_array();
    let judge = services.into_iter().flatten().find(|service| service["name"] == "judge").unwrap();
    let command = judge["command"].as_str().unwrap();
    assert!(command.contains("org/j") && command.contains("--port 8001"), "{command}");
    assert_eq!(imported.request["resources"]["time_hours"], 24.0);
    assert_eq!(imported.request["steps"][0]["name"], "on-harness-mmlu-pro-instruct");
}

#[test]
fn an_evaluation_without_a_deployment_has_only_steps() {
    let file = json!({
        "defaults": [{"execution": "slurm/default"}, {"deployment": "none"}, "_self_"],
        "execution": {"account": "ml", "sbatch_extra_flags": {"constraint": "h100", "exclusive": null, "qos": "normal", "hint": "nomultithread"}, "gres": "gpu:h100:1"},
        "target": {"api_endpoint": {"url": "https://models.example/v1/chat/completions", "model_id": "m", "api_key_name": "API_KEY"}},
        "evaluation": {"env_vars": {"API_KEY": "runtime:TEAM_KEY"}, "tasks": [{"name": "lm-eval.gsm8k"}, {"name": "lm-eval.gsm8k"}]},
    });
    let request = import(file, Form::Job).unwrap().request;
    assert!(request.get("services").is_none());
    assert_eq!(request.pointer("/steps/1/name"), Some(&json!("lm-eval-gsm8k-1")));
    assert_eq!(request.pointer("/steps/0/node_env"), Some(&json!({"API_KEY": "TEAM_KEY"})));
    assert_eq!(request.pointer("/resources/gpu_type"), Some(&json!("h100")));
    assert_eq!(request.pointer("/resources/constraint"), Some(&json!("h100")));
    assert_eq!(request.pointer("/backend_details/qos"), Some(&json!("normal")));
    assert_eq!(request.pointer("/backend_details/sbatch_options"), Some(&json!({"hint": "nomultithread"})));
    let config = request.pointer("/files/lm-eval-gsm8k.yaml/json").unwrap();
    assert_eq!(config.pointer("/config/type"), Some(&json!("gsm8k")));
    assert_eq!(config.pointer("/target/api_endpoint/api_key_name"), Some(&json!("API_KEY")));
}
