//! Pause, resume, retry and delete on a real cluster.

use std::time::Duration;

use serde_json::{Value, json};

use crate::{
    cluster::sql,
    ending::{command, training},
    service::{Service, fresh_id, until},
};

/// The service's directory for its user.
fn base(service: &Service) -> String {
    service.sandbox.var("SLURM_BASE_RESULTS_DIR").to_owned()
}

/// The files of a job. `find` fails if a directory is deleted while it looks.
fn found(service: &Service, test: &str, id: &str) -> Result<String, String> {
    service.sandbox.try_login("login1", &format!("find {} {test} '*{id}*'", base(service)))
}

#[test]
fn a_paused_training_resumes_from_its_checkpoint() {
    let service = Service::start();
    let mut job = training(12, &json!({"epoch_seconds": 0.1, "held_at_epoch": 3}));
    job["specs"]["train"]["resume_training_checkpoint_path"] = Value::Null;
    let id = service.submit(&job);
    service.wait(&id, "some epochs", |s| s["progress"]["epoch"].as_u64().is_some_and(|epoch| epoch >= 2));
    let answer = service.post(&format!("/jobs/{id}/pause"), "");
    assert_eq!((answer.status, &answer.json()["status"]), (202, &json!("Pausing")));
    let paused = service.wait(&id, "paused", |s| s["status"] == "Paused");
    assert_eq!(paused["phase"], "paused", "{paused}");
    assert!(paused["message"].as_str().unwrap().contains("from its newest checkpoint"), "{paused}");
    let queue = service.sandbox.login(&format!("squeue --me -h -n tao-job-{id} -o %A"));
    assert_eq!(queue, "", "nothing of it is in Slurm");
    assert_eq!(service.post(&format!("/jobs/{id}/pause"), "").status, 200, "once more changes nothing");

    service.let_go(&id);
    let answer = service.post(&format!("/jobs/{id}/resume"), "");
    assert_eq!((answer.status, &answer.json()["status"]), (202, &json!("Resuming")));
    let ended = service.wait_ended(&id);
    assert_eq!((&ended["status"], &ended["attempt"]), (&json!("Done"), &json!(2)), "{ended}");
    let log = service.get(&format!("/jobs/{id}/logs?stream=out&tail=100")).text;
    let specs = service.sandbox.login(&format!("cat {}/specs/{id}.json", base(&service)));
    let specs: Value = serde_json::from_str(&specs).unwrap();
    let from = specs["train"]["resume_training_checkpoint_path"].as_str().unwrap();
    assert!(from.contains(&format!("/results/{id}/")) && from.contains("model_epoch_"), "{from}");
    assert!(!log.contains("poch 1/12"), "the second attempt begins where the first was paused: {log}");
}

#[test]
fn a_pending_job_is_paused_and_resumed() {
    let service = Service::start();
    let mut holder = command("exec sleep 600");
    holder["resources"] = json!({"num_gpus": 8, "num_nodes": 4, "cpus_per_task": 64, "time_hours": 0.5});
    let holder = service.submit(&holder);
    service.wait(&holder, "running", |s| s["status"] == "Running");
    let mut job = command("echo out");
    job["resources"]["cpus_per_task"] = 64.into();
    let id = service.submit(&job);
    service.wait(&id, "in the queue", |s| s["phase"] == "in_queue");
    service.post(&format!("/jobs/{id}/pause"), "");
    let paused = service.wait(&id, "paused", |s| s["status"] == "Paused");
    assert!(paused["message"].as_str().unwrap().contains("it starts over"), "{paused}");
    service.post(&format!("/jobs/{holder}/cancel"), "");
    service.post(&format!("/jobs/{id}/resume"), "");
    assert_eq!(service.wait_ended(&id)["status"], "Done");
    service.wait_ended(&holder);
}

#[test]
fn a_failed_job_with_secrets_is_retried_with_them() {
    let service = Service::start();
    let mut job = command("test \"$HF_TOKEN\" = right || { echo \"not that one\" >&2; exit 5; }");
    job["secret_env_vars"] = json!({"HF_TOKEN": "wrong"});
    let id = service.submit(&job);
    assert_eq!(service.wait_ended(&id)["status"], "Error");
    let without = service.post(&format!("/jobs/{id}/retry"), "");
    assert_eq!(without.status, 422, "{}", without.text);
    assert_eq!(without.json()["errors"][0]["pointer"], "/secret_env_vars/HF_TOKEN");
    let with = json!({"secret_env_vars": {"HF_TOKEN": "right"}}).to_string();
    assert_eq!(service.post(&format!("/jobs/{id}/retry"), &with).status, 202);
    let ended = service.wait(&id, "the second end", |s| s["phase"] == "ended" && s["attempt"] == 2);
    assert_eq!(ended["status"], "Done", "{ended}");
    assert_eq!(service.post(&format!("/jobs/{id}/retry"), &with).status, 409, "Done is done");
}

#[test]
fn deleting_a_job_with_its_artifacts_leaves_no_files() {
    let service = Service::start();
    let id = service.submit(&training(1, &json!({"epoch_seconds": 0.1})));
    assert_eq!(service.delete(&format!("/jobs/{id}")).status, 409, "it has not ended");
    service.wait_ended(&id);
    let kept = service.submit(&command("true"));
    service.wait_ended(&kept);
    let find = |id: &str| found(&service, "-name", id);
    assert!(find(&id).unwrap().contains("results/"), "{:?}", find(&id));
    assert_eq!(service.delete(&format!("/jobs/{id}?artifacts=true")).status, 204);
    assert_eq!(service.get(&format!("/jobs/{id}")).status, 404);
    until("its files to be gone", Duration::from_secs(30), || find(&id).is_ok_and(|rest| rest.is_empty()));
    assert!(!find(&kept).unwrap().is_empty(), "what is of others stays");
    assert_eq!(service.delete(&format!("/jobs/{kept}")).status, 204);
    assert!(!find(&kept).unwrap().is_empty(), "without artifacts the files stay");
    let jobs: Value = service.get("/jobs").json();
    assert!(!jobs.to_string().contains(&kept), "{jobs}");
}

#[test]
fn a_results_directory_from_before_the_job_survives_its_deletion() {
    let service = Service::start();
    let id = fresh_id();
    let results = format!("{}/results/{id}", base(&service));
    service.sandbox.login(&format!("mkdir -p {results} && echo mine >{results}/precious"));
    let mut job = command("true");
    job["id"] = json!(id);
    assert_eq!(service.submit(&job), id);
    service.wait_ended(&id);
    assert_eq!(service.delete(&format!("/jobs/{id}?artifacts=true")).status, 204);
    let left = format!("{results}\n{results}/precious");
    let only_that_is_left = || found(&service, "-path", &id).is_ok_and(|rest| rest.trim() == left);
    until("the rest to be gone", Duration::from_secs(30), only_that_is_left);
}

#[test]
fn old_finished_jobs_are_deleted_if_configured() {
    let mut service = Service::start();
    let [old, young] = ["true", "echo out"].map(|text| service.submit(&command(text)));
    for id in [&old, &young] {
        assert_eq!(service.wait_ended(id)["status"], "Done");
    }
    sql(
        &service.database_url,
        &format!("update jobs set finished_at = finished_at - interval '2 hours' where id = '{old}'"),
    );
    service.stop();
    service.set("TAO_SLURM_KEEP_ENDED_JOBS", "1h");
    service.spawn();
    let answer = || service.get(&format!("/jobs/{old}"));
    until("the old job to be gone", Duration::from_secs(30), || answer().status == 404);
    assert_eq!(service.status(&young)["status"], "Done");
    until("its number", Duration::from_secs(30), || {
        service.metric("tao_slurm_jobs_deleted_total", "") >= 1.0
    });
    // Its files on the cluster belong to the owner of the job.
    let left = service.sandbox.login(&format!("ls -d {}/results/{old}", base(&service)));
    assert!(left.ends_with(&old), "{left}");
}
