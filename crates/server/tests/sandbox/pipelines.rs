//! Pipelines on a real Slurm: each branch of success, failure, cancellation and a node that fails.

mod shapes;

use serde_json::{Value, json};
use test_case::test_case;

use crate::{
    ending::command,
    service::{Service, until},
};

const BASE: &str = "/lustre/fsw/portfolios/edgeai/users/tao";

fn job(text: &str, needs: &[(&str, &str)]) -> Value {
    let mut job = command(text);
    job["needs"] = needs.iter().map(|(job, when)| json!({"job": job, "when": when})).collect();
    job
}

/// Preparation, training and evaluation, an alarm if the training fails, and a clean-up whatever happened.
fn nightly(train: &str) -> Value {
    json!({"jobs": {
        "prep": job("own=$TAO_API_RESULTS_DIR/$TAO_API_JOB_ID; mkdir -p \"$own\"; echo 42 >\"$own/data\"", &[]),
        "train": job(train, &[("prep", "succeeded")]),
        "evaluate": job("cat \"$NEEDS_TRAIN_DIR/model\"", &[("train", "succeeded")]),
        "alarm": job("echo \"$NEEDS_TRAIN_ID is $NEEDS_TRAIN_STATUS\"", &[("train", "failed")]),
        "clean-up": job("rm \"$NEEDS_PREP_DIR/data\"", &[
            ("prep", "succeeded"), ("evaluate", "finished"), ("alarm", "finished")
        ]),
    }})
}

const TRAIN: &str =
    "own=$TAO_API_RESULTS_DIR/$TAO_API_JOB_ID; mkdir -p \"$own\"; cp \"$NEEDS_PREP_DIR/data\" \"$own/model\"";

fn submit(service: &Service, pipeline: &Value) -> String {
    let answer = service.post("/pipelines", &pipeline.to_string());
    assert_eq!(answer.status, 201, "{}", answer.text);
    answer.json()["id"].as_str().unwrap().to_owned()
}

fn read(service: &Service, id: &str) -> Value {
    service.get(&format!("/pipelines/{id}")).json()
}

fn ended(service: &Service, id: &str) -> Value {
    until("the end of the pipeline", std::time::Duration::from_mins(5), || {
        ["Done", "Error", "Canceled"].contains(&read(service, id)["status"].as_str().unwrap())
    });
    read(service, id)
}

fn member<'a>(pipeline: &'a Value, name: &str) -> &'a Value {
    pipeline["jobs"].as_array().unwrap().iter().find(|job| job["name"] == name).unwrap()
}

/// The id of a job, when it has made a file in its directory.
fn begun(service: &Service, pipeline: &str, name: &str, file: &str) -> String {
    let id = member(&read(service, pipeline), name)["id"].as_str().unwrap().to_owned();
    until("the work to begin", std::time::Duration::from_mins(3), || {
        service.sandbox.try_login("login1", &format!("test -e {BASE}/results/{id}/{file}")).is_ok()
    });
    id
}

/// The fault that takes the power of the last node of a job.
fn power_of(service: &Service, id: &str) -> &'static str {
    let running = service.wait(id, "its nodes", |s| s["nodes"][0].is_string());
    let node = running["nodes"].as_array().unwrap().last().unwrap().as_str().unwrap().to_owned();
    let faults = ["node01-dead", "node02-dead", "node03-dead", "node04-dead"];
    faults.into_iter().find(|fault| fault.starts_with(&node)).unwrap()
}

fn states(pipeline: &Value) -> Vec<(String, String)> {
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    let state = |job: &Value| {
        let status = if job["skipped"] == true { "skipped".to_owned() } else { text(&job["status"]) };
        (text(&job["name"]), status)
    };
    pipeline["jobs"].as_array().unwrap().iter().map(state).collect()
}

fn are(pipeline: &Value, expected: [&str; 5]) {
    let names = ["prep", "train", "evaluate", "alarm", "clean-up"];
    for (name, status) in names.iter().zip(expected) {
        let state = states(pipeline).into_iter().find(|(known, _)| known == name).unwrap();
        assert_eq!(state.1, status, "{pipeline:#}");
    }
}

#[test]
fn a_pipeline_runs_in_order_and_each_job_finds_what_the_others_made() {
    let service = Service::start();
    let id = submit(&service, &nightly(TRAIN));
    let pipeline = ended(&service, &id);
    are(&pipeline, ["Done", "Done", "Done", "skipped", "Done"]);
    assert_eq!(pipeline["status"], "Done");
    let evaluate = member(&pipeline, "evaluate")["id"].as_str().unwrap();
    assert_eq!(service.get(&format!("/jobs/{evaluate}/logs?stream=out")).text, "42\n");
    let prep = member(&pipeline, "prep")["id"].as_str().unwrap();
    let left = service.sandbox.login(&format!("ls {BASE}/results/{prep}"));
    assert_eq!(left.trim(), "", "the clean-up came last");
}

#[test]
fn after_a_failure_the_alarm_and_the_clean_up_run_and_a_retry_goes_on_from_there() {
    let service = Service::start();
    let once = format!("{TRAIN}; if mkdir \"$own/first\"; then exit 7; fi");
    // The clean-up would take what the retry needs.
    let mut pipeline = nightly(&once);
    pipeline["jobs"]["clean-up"]["command"] = json!("true");
    let id = submit(&service, &pipeline);
    let failed = ended(&service, &id);
    are(&failed, ["Done", "Error", "skipped", "Done", "Done"]);
    assert_eq!(failed["status"], "Error");
    let alarm = member(&failed, "alarm")["id"].as_str().unwrap();
    let train = member(&failed, "train")["id"].as_str().unwrap();
    let log = service.get(&format!("/jobs/{alarm}/logs?stream=out")).text;
    assert_eq!(log, format!("{train} is Error\n"));
    assert_eq!(service.post(&format!("/pipelines/{id}/retry"), "").status, 202);
    let done = ended(&service, &id);
    are(&done, ["Done", "Done", "Done", "Done", "Done"]);
}

#[test_case(1, ["Done", "Done", "Done", "skipped", "Done"] ; "it is retried")]
#[test_case(0, ["Done", "Error", "skipped", "Done", "Done"] ; "it is not retried")]
fn a_node_fails_under_the_training(max_retries: u32, expected: [&str; 5]) {
    let service = Service::start_with(&[("TAO_SLURM_RETRY_WAIT", "1s")]);
    let mut pipeline = nightly(&format!("{TRAIN}; if mkdir \"$own/first\"; then sleep 600; else true; fi"));
    pipeline["jobs"]["train"]["use_requeue"] = false.into();
    pipeline["jobs"]["train"]["retry"] = json!({"max_retries": max_retries});
    let id = submit(&service, &pipeline);
    let train = begun(&service, &id, "train", "first");
    let _dead = service.sandbox.fault(power_of(&service, &train));
    let ended = ended(&service, &id);
    are(&ended, expected);
    let attempts = service.get(&format!("/jobs/{train}/attempts")).json();
    assert_eq!(attempts["attempts"][0]["slurm_state"], "NODE_FAIL", "{attempts}");
}

#[test]
fn a_canceled_pipeline_leaves_nothing_in_the_queue() {
    let service = Service::start();
    let id = submit(&service, &nightly("sleep 300"));
    until("the training to run", std::time::Duration::from_mins(3), || {
        member(&read(&service, &id), "train")["status"] == "Running"
    });
    assert_eq!(service.post(&format!("/pipelines/{id}/cancel"), "").status, 202);
    let canceled = ended(&service, &id);
    are(&canceled, ["Done", "Canceled", "Canceled", "Canceled", "Canceled"]);
    let train = member(&canceled, "train")["id"].as_str().unwrap();
    assert_eq!(service.sandbox.login(&format!("squeue --me -h -n tao-job-{train} -o %A")), "");
}

#[test]
fn the_command_line_submits_a_pipeline_in_yaml_and_follows_it() {
    let service = Service::start();
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("pipeline.yaml");
    let text = "jobs:\n  one:\n    command: 'true'\n    resources: {num_gpus: 0, cpus_per_task: 1, time_hours: 0.1}\n  \
                two:\n    command: 'true'\n    needs: [{job: one}]\n    resources: {num_gpus: 0, cpus_per_task: 1, time_hours: 0.1}\n";
    std::fs::write(&file, text).unwrap();
    let shown = service.run(&["pipeline", "submit", file.to_str().unwrap(), "--watch"]);
    let text = String::from_utf8_lossy(&shown.stdout);
    assert!(shown.status.success(), "{text} {}", String::from_utf8_lossy(&shown.stderr));
    assert!(text.contains("← one") && text.contains("2 done"), "{text}");
}

/// The states of the tasks of a job, by number.
fn task_states(service: &Service, id: &str) -> Vec<String> {
    let tasks = service.get(&format!("/jobs/{id}/tasks")).json();
    let state = |task: &Value| task["status"].as_str().unwrap().to_owned();
    tasks["tasks"].as_array().unwrap().iter().map(state).collect()
}

#[test]
fn each_task_goes_when_the_task_of_the_same_number_is_done() {
    let service = Service::start();
    // Task 0 ends last. Task 1 fails once.
    let train = "case $TAO_TASK in 0) until [ -e $TAO_API_RESULTS_DIR/go ]; do sleep 0.2; done;; \
                 1) mkdir $TAO_API_RESULTS_DIR/first && exit 7;; esac; \
                 echo \"model $TAO_TASK\" >$TAO_API_RESULTS_DIR/model; true";
    let mut train = job(train, &[]);
    train["array"] = json!({"indices": "0-2"});
    let mut evaluate = job("cat $NEEDS_TRAIN_DIR/$TAO_TASK/model", &[("train", "each")]);
    evaluate["array"] = json!({"indices": "0-2"});
    let id = submit(&service, &json!({"jobs": {"train": train, "evaluate": evaluate}}));
    let of = |name| member(&read(&service, &id), name)["id"].as_str().unwrap().to_owned();
    let (train, evaluate) = (of("train"), of("evaluate"));
    let three_minutes = std::time::Duration::from_mins(3);
    until("the task 2 to be evaluated", three_minutes, || task_states(&service, &evaluate)[2] == "done");
    until("the task 1 to be skipped", three_minutes, || task_states(&service, &evaluate)[1] == "canceled");
    assert_eq!(task_states(&service, &evaluate)[0], "pending");
    let waits = service.get(&format!("/jobs/{evaluate}")).json();
    assert_eq!((&waits["status"], &waits["phase"]), (&json!("Pending"), &json!("waiting")), "{waits:#}");
    assert_eq!(waits["message"], "Waits for task 0 of train to succeed.");
    service.sandbox.login(&format!("touch {BASE}/results/{train}/0/go"));
    let failed = ended(&service, &id);
    assert_eq!(failed["status"], "Error");
    assert_eq!(task_states(&service, &evaluate), ["done", "canceled", "done"]);
    let retried = service.post(&format!("/jobs/{train}/retry"), &json!({"tasks": "failed"}).to_string());
    assert_eq!(retried.status, 202, "{}", retried.text);
    until("the skipped task to be evaluated", three_minutes, || {
        task_states(&service, &evaluate) == ["done", "done", "done"]
    });
    let log = service.get(&format!("/jobs/{evaluate}/logs?stream=out&task=1")).text;
    assert_eq!(log, "model 1\n");
    assert_eq!(ended(&service, &id)["status"], "Done");
}
