//! TAO's own client function, unmodified from the published package, with the running service.

use std::{
    fs,
    io::{BufRead, BufReader},
    path::Path,
    process::{Command, Stdio},
};

use serde_json::{Value, json};

use crate::service::{Service, until};

/// Installed by `ci/setup --test`.
const PYTHON: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../.tools/tao-client/bin/python");
const SCRIPT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/sandbox/tao_client/post_and_wait.py");
const IMAGE: &str = "/lustre/images/tao-toolkit.sqsh";

/// A new id each time, because files of deleted jobs stay on the cluster.
fn new_id() -> String {
    fs::read_to_string("/proc/sys/kernel/random/uuid").unwrap().trim().to_owned()
}

/// The arguments of the function, for a training of the sandbox's test image.
fn training(service: &Service, knobs: &Value) -> Value {
    let id = new_id();
    json!({
        "network": "classification_pyt", "action": "retrain", "job_id": id,
        "specs": {
            "results_dir": format!("/results/{id}"), "train": {"num_epochs": 2, "num_gpus": 1}, "sandbox": knobs,
        },
        "cloud_metadata": {
            "slurm_user": service.sandbox.var("SLURM_USER"),
            "slurm_hostname": hosts(service),
            "aws": {"bucket": {"secret_key": "hunter2"}},
        },
        "docker_env_vars": {"WANDB_PROJECT": "open"},
        "statefulset_replicas": 2,
    })
}

/// The names of the login hosts, in the form of a workspace.
fn hosts(service: &Service) -> Vec<String> {
    let hosts = service.sandbox.var("SLURM_HOSTNAME").split(',');
    hosts.map(|host| host.split(':').next().unwrap_or_default().to_owned()).collect()
}

fn service(auth: &str) -> Service {
    Service::start_with(&[
        ("TAO_SLURM_TAO_IMAGE", IMAGE),
        ("TAO_SLURM_AUTH", auth),
        ("SLURM_CPUS_PER_TASK", "1"),
    ])
}

/// The request, the status code, and the document.
type Answer = (String, u16, Value);

/// Runs the function and returns the responses that differ from the previous one.
fn call(base_url: &str, job: &Value, home: &Path) -> Vec<Answer> {
    call_and(base_url, job, home, |_| {})
}

/// As `call`, and does this with each response as soon as it is there.
fn call_and(base_url: &str, job: &Value, home: &Path, mut then: impl FnMut(&Answer)) -> Vec<Answer> {
    assert!(Path::new(PYTHON).exists(), "TAO's client is not installed; run ci/setup --test");
    let mut command = Command::new(PYTHON);
    command.args(["-I", SCRIPT, base_url, &job.to_string()]).env_clear();
    command.env("HOME", home).env("PATH", "/usr/bin:/bin").current_dir(home);
    let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
    let lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let answers: Vec<Answer> = lines
        .map(|line| serde_json::from_str(&line.unwrap()).unwrap())
        .inspect(|answer| then(answer))
        .collect();
    assert!(child.wait().unwrap().success(), "{answers:?}");
    answers
}

#[test]
fn tao_s_client_submits_a_job_and_polls_its_status_to_the_end() {
    let service = service("disabled");
    let home = tempfile::tempdir().unwrap();
    let sent = training(&service, &json!({"epoch_seconds": 0.1, "held_at_epoch": 1}));
    let answers = call_and(&service.url, &sent, home.path(), |(.., document)| {
        if document["status"] == "Running" {
            service.let_go(sent["job_id"].as_str().unwrap());
        }
    });
    let [posted, statuses @ ..] = answers.as_slice() else { panic!("no answer") };
    assert_eq!(*posted, ("post_action".to_owned(), 200, json!({"job_id": sent["job_id"]})));
    let statuses: Vec<&str> =
        statuses.iter().map(|(_, _, answer)| answer["status"].as_str().unwrap()).collect();
    assert_eq!(statuses, ["Pending", "Running", "Done"], "{}", service.log_text());

    let job = service.get(&format!("/jobs/{}", sent["job_id"].as_str().unwrap())).json();
    assert_eq!((&job["action"], &job["image"]), (&json!("train"), &json!(IMAGE)));
    assert_eq!((&job["resources"]["num_nodes"], &job["resources"]["gpus_per_node"]), (&json!(2), &json!(1)));
    assert_eq!(job["docker_env_vars"]["WANDB_PROJECT"], "open");
    assert!(!job.to_string().contains("hunter2"));
}

#[test]
fn a_training_that_fails_is_an_error_for_tao_s_client_with_the_reason() {
    let service = service("disabled");
    let home = tempfile::tempdir().unwrap();
    let answers = call(&service.url, &training(&service, &json!({"fail": "exit"})), home.path());
    let (_, code, last) = answers.last().unwrap();
    assert_eq!((*code, &last["status"]), (200, &json!("Error")), "{answers:?}");
    assert!(last["message"].as_str().is_some_and(|text| !text.is_empty()), "{last}");
}

#[test]
fn tao_s_client_takes_its_token_from_the_base_url_or_a_netrc_file() {
    let service = service("tokens");
    let home = tempfile::tempdir().unwrap();
    let made = service.run(&["token", "create", "--owner", "tao", "--scope", "read,write"]);
    let token = String::from_utf8(made.stdout).unwrap().trim().to_owned();
    let job = training(&service, &json!({"epoch_seconds": 0.1}));

    let refused = call(&service.url, &job, home.path());
    let [(_, 401, document)] = refused.as_slice() else { panic!("{refused:?}") };
    assert!(document["error_desc"].as_str().unwrap().contains("token"), "{document}");

    let with_token = service.url.replace("http://", &format!("http://tao:{token}@"));
    assert_eq!(call(&with_token, &job, home.path()).last().unwrap().2["status"], "Done");

    let netrc = format!("machine 127.0.0.1\nlogin tao\npassword {token}\n");
    fs::write(home.path().join(".netrc"), netrc).unwrap();
    let job = training(&service, &json!({"epoch_seconds": 0.1}));
    assert_eq!(call(&service.url, &job, home.path()).last().unwrap().2["status"], "Done");
    until("the log to be written", std::time::Duration::from_secs(5), || !service.log_text().is_empty());
    assert!(!service.log_text().contains(&token), "the token is in the log");
}

#[test]
fn tao_s_client_gets_errors_that_say_what_to_fix() {
    let service = service("disabled");
    let home = tempfile::tempdir().unwrap();
    let mut job = training(&service, &json!({}));
    job["cloud_metadata"]["slurm_hostname"] = json!(["evil.example"]);
    let answers = call(&service.url, &job, home.path());
    let [(_, 422, document)] = answers.as_slice() else { panic!("{answers:?}") };
    assert_eq!(document["error_code"], 422);
    let text = document["error_desc"].as_str().unwrap();
    assert!(text.contains("/cloud_metadata/slurm_hostname") && text.contains("sandbox"), "{text}");
}
