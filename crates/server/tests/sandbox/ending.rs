//! TAO jobs and commands, and how they end.

use std::process::Command;

use serde_json::{Value, json};

use crate::service::{Service, until};

const IMAGE: &str = "/lustre/images/tao-toolkit.sqsh";

/// A TAO training with the sandbox's test image; `knobs` make it fail.
pub(crate) fn training(epochs: u32, knobs: &Value) -> Value {
    json!({
        "image": IMAGE,
        "network_arch": "classification_pyt",
        "action": "train",
        "specs": {"train": {"num_epochs": epochs}, "sandbox": knobs},
        "resources": {"num_gpus": 1, "cpus_per_task": 1, "time_hours": 0.5},
    })
}

/// A small command.
pub(crate) fn command(text: &str) -> Value {
    json!({"command": text, "resources": {"num_gpus": 0, "cpus_per_task": 1, "time_hours": 0.1}})
}

/// A command that waits until the test [lets it go on](Service::let_go), however slow the machine is.
pub(crate) fn held(text: &str) -> Value {
    command(&format!(r#"until [ -e "$TAO_API_RESULTS_DIR/$TAO_API_JOB_ID/go" ]; do sleep 0.2; done; {text}"#))
}

#[test]
fn a_training_shows_its_epochs_and_ends_done() {
    let service = Service::start();
    let id = service.submit(&training(3, &json!({"epoch_seconds": 0.1, "held_at_epoch": 2})));
    let running = service.wait(&id, "an epoch", |s| s["status"] == "Running" && s["progress"]["epoch"] == 2);
    assert_eq!(running["progress"]["max_epoch"], 3);
    assert_eq!(running["nodes"].as_array().unwrap().len(), 1);
    service.let_go(&id);

    let ended = service.wait_ended(&id);
    assert_eq!(ended["status"], "Done", "{ended}");
    assert_eq!(ended["progress"]["percent"], 100);
    assert_eq!(ended["slurm_state"], "COMPLETED");
    for time in ["submitted_on", "started_on", "finished_on"] {
        assert!(ended[time].is_string(), "{time}: {ended}");
    }
    let log = service.get(&format!("/jobs/{id}/logs?stream=out&tail=5"));
    assert!(log.text.to_lowercase().contains("epoch"), "{}", log.text);
}

/// With the commands and files that the quickstart of the README prints.
#[test]
fn the_trainings_of_the_readme_end_done() {
    const README: &str = include_str!("../../../../README.md");
    const DEMO: &str = include_str!("../../../../deploy/demo/train.json");
    let service = Service::start();
    let line = README.lines().find(|line| line.starts_with("mkdir -p \"$SANDBOX_LUSTRE")).unwrap();
    let made = Command::new("sh")
        .args(["-ec", line])
        .env("SANDBOX_LUSTRE", service.sandbox.var("SANDBOX_LUSTRE"))
        .status();
    assert!(made.unwrap().success(), "{line}");
    let (_, example) = README.split_once("```json\n").unwrap();
    for text in [example.split("```").next().unwrap(), DEMO] {
        let id = service.submit(&serde_json::from_str(text).unwrap());
        let ended = service.wait_ended(&id);
        assert_eq!(ended["status"], "Done", "{ended}");
    }
}

#[test]
fn a_registry_image_runs_too() {
    let service = Service::start();
    let mut job = training(1, &json!({"epoch_seconds": 0.1}));
    job["image"] = "registry.sandbox/nvidia/tao/tao-toolkit:6.26.3-pyt".into();
    let id = service.submit(&job);
    assert_eq!(service.wait_ended(&id)["status"], "Done");
}

#[test]
fn a_command_runs_as_written_and_ends_done() {
    let service = Service::start();
    let text = "echo \"it's $((6 * 7)) on $(hostname)\"\nprintf '%s\\n' '$HOME `id` \"x\" \\' >&2";
    let id = service.submit(&command(text));
    assert_eq!(service.wait_ended(&id)["status"], "Done");
    let out = service.get(&format!("/jobs/{id}/logs?stream=out&tail=50")).text;
    assert!(out.contains("it's 42 on "), "{out}");
    let err = service.get(&format!("/jobs/{id}/logs?stream=err&tail=50")).text;
    assert!(err.contains("$HOME `id` \"x\" \\"), "{err}");
}

#[test]
fn a_command_in_a_container_sees_its_files_and_environment() {
    let service = Service::start();
    let mut job =
        command("echo \"$GREETING from $(cat /etc/hostname 2>/dev/null || hostname)\"; ls /lustre/images");
    job["image"] = IMAGE.into();
    job["docker_env_vars"] = json!({"GREETING": "a, b 'c' \"d\"\n$(id)"});
    let id = service.submit(&job);
    assert_eq!(service.wait_ended(&id)["status"], "Done");
    let out = service.get(&format!("/jobs/{id}/logs?stream=out&tail=50")).text;
    assert!(out.contains("a, b 'c' \"d\"\n$(id) from "), "{out}");
    assert!(out.contains("tao-toolkit.sqsh"), "{out}");
}

#[test]
fn a_training_with_mounts_of_its_own_finds_its_files() {
    let service = Service::start();
    let mut job = training(1, &json!({"epoch_seconds": 0.1}));
    // The base directory, which has its files, is not among them.
    job["container"] = json!({"mounts": ["/lustre/images:/data:ro"]});
    let id = service.submit(&job);
    assert_eq!(service.wait_ended(&id)["status"], "Done");
    let mut job = command("ls /data");
    job["image"] = IMAGE.into();
    job["container"] = json!({"mounts": ["/lustre/images:/data:ro"]});
    let id = service.submit(&job);
    assert_eq!(service.wait_ended(&id)["status"], "Done");
    let out = service.get(&format!("/jobs/{id}/logs?stream=out&tail=50")).text;
    assert!(out.contains("tao-toolkit.sqsh"), "{out}");
}

#[test]
fn an_exit_code_is_an_error_with_that_code_and_the_last_lines() {
    let service = Service::start();
    for job in [
        command("echo 'the reason' >&2; exit 3"),
        training(3, &json!({"epoch_seconds": 0.1, "fail": "exit", "exit_code": 3, "fail_at_epoch": 2})),
    ] {
        let id = service.submit(&job);
        let ended = service.wait_ended(&id);
        assert_eq!(ended["status"], "Error", "{ended}");
        let message = ended["message"].as_str().unwrap();
        assert!(message.contains("exited with code 3"), "{message}");
        assert!(message.contains("Last lines of main.err:\n"), "{message}");
        let whole = service.get(&format!("/jobs/{id}")).json();
        assert_eq!(whole["attempt_details"]["exit_code"], 3, "{whole}");
    }
}

#[test]
fn a_failure_that_only_the_status_file_reports_is_an_error() {
    let service = Service::start();
    let id = service.submit(&training(3, &json!({"epoch_seconds": 0.1, "fail": "status_failure"})));
    let ended = service.wait_ended(&id);
    assert_eq!((&ended["status"], &ended["slurm_state"]), (&json!("Error"), &json!("COMPLETED")), "{ended}");
}

#[test]
fn a_training_without_a_final_status_is_an_error_after_the_grace_period() {
    let service = Service::start_with(&[("TAO_SLURM_FINISH_GRACE", "2s")]);
    let id = service.submit(&training(2, &json!({"epoch_seconds": 0.1, "fail": "silent"})));
    let ended = service.wait_ended(&id);
    assert_eq!(ended["status"], "Error", "{ended}");
    assert!(ended["message"].as_str().unwrap().contains("did not report success"), "{ended}");
}

#[test]
fn a_program_killed_by_a_signal_is_an_error() {
    let service = Service::start();
    let id = service.submit(&training(2, &json!({"epoch_seconds": 0.1, "fail": "killed"})));
    assert_eq!(service.wait_ended(&id)["status"], "Error");
}

#[test]
fn a_canceled_job_leaves_the_queue_and_ends_canceled() {
    let service = Service::start();
    let id = service.submit(&training(1000, &json!({"epoch_seconds": 1})));
    let running = service.wait(&id, "running", |s| s["status"] == "Running");
    let answer = service.post(&format!("/jobs/{id}/cancel"), "");
    assert_eq!(answer.status, 202, "{}", answer.text);
    assert_eq!(service.wait_ended(&id)["status"], "Canceled");

    let slurm_id = &running["slurm_job_id"];
    let slurm_id = slurm_id.as_str().map_or_else(|| slurm_id.to_string(), str::to_owned);
    let queue = service.sandbox.login("squeue --me -h -o %A");
    assert!(!queue.lines().any(|line| line == slurm_id), "{queue}");

    let again = service.post(&format!("/jobs/{id}/cancel"), "");
    assert_eq!(again.status, 200, "a job that has ended stays as it is: {}", again.text);
}

#[test]
fn a_pending_job_that_is_canceled_ends_canceled() {
    let service = Service::start();
    let mut job = command("true");
    // No node has this many free processors while the first job runs.
    job["resources"]["cpus_per_task"] = 64.into();
    let holders: Vec<_> = (0..4).map(|_| service.submit(&hold(&job))).collect();
    for holder in &holders {
        service.wait(holder, "running", |s| s["status"] == "Running");
    }
    let id = service.submit(&job);
    let waiting =
        service.wait(&id, "in the queue", |s| s["phase"] == "in_queue" && s["pending_reason"].is_string());
    assert_eq!(waiting["status"], "Pending");
    // The pending one first: it would start as soon as another ends.
    for job in [&id].into_iter().chain(&holders) {
        service.post(&format!("/jobs/{job}/cancel"), "");
        assert_eq!(service.wait_ended(job)["status"], "Canceled");
    }
}

fn hold(job: &Value) -> Value {
    let mut job = job.clone();
    job["command"] = "exec sleep 600".into();
    job
}

#[test]
fn a_job_canceled_with_scancel_ends_canceled() {
    let service = Service::start();
    let id = service.submit(&command("exec sleep 600"));
    service.wait(&id, "running", |s| s["status"] == "Running");
    service.sandbox.login(&format!("scancel -n tao-job-{id}"));
    let ended = service.wait_ended(&id);
    assert_eq!(ended["status"], "Canceled");
    assert!(ended["message"].as_str().unwrap().contains("not by this service"), "{ended}");
}

#[test]
fn the_command_line_shows_status_logs_and_exit_codes() {
    let service = Service::start();
    let done = service.submit(&command("echo out; echo err >&2"));
    let watch = service.run(&["status", &done, "--watch"]);
    assert_eq!(watch.status.code(), Some(0), "{}", String::from_utf8_lossy(&watch.stderr));
    let logs = service.run(&["logs", &done, "--stream", "out"]);
    assert!(String::from_utf8_lossy(&logs.stdout).contains("out\n"));
    let failed = service.submit(&command("exit 7"));
    assert_eq!(service.run(&["status", &failed, "--watch"]).status.code(), Some(1));
    let list = service.run(&["list", "-o", "name"]);
    let list = String::from_utf8_lossy(&list.stdout);
    assert!(list.contains(&done) && list.contains(&failed), "{list}");

    let canceled = service.submit(&command("exec sleep 600"));
    assert!(service.run(&["cancel", &canceled]).status.success());
    until("the canceled job to end", std::time::Duration::from_mins(1), || {
        service.status(&canceled)["status"] == "Canceled"
    });
}
