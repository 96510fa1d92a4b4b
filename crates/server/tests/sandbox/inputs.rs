//! The inputs of a job must exist on the cluster; missing ones are named before the job is staged.

use serde_json::json;

use crate::{
    ending::{command, training},
    service::Service,
};

#[test]
fn every_missing_path_is_named_and_the_job_is_not_submitted() {
    let service = Service::start();
    let mut job = training(1, &json!({"epoch_seconds": 0.1}));
    job["specs"]["dataset"] = json!({
        "train_data_sources": [{"image_dir": "lustre:///lustre/none/images", "json_file": "/lustre/none/a b.json"}],
        "val_dataset": {"data_root": "slurm://None/lustre/images"},
    });
    job["inputs"] = json!(["lustre:///lustre/none/$(touch owned)'\"", "/lustre/images/tao-toolkit.sqsh"]);
    let id = service.submit(&job);
    let ended = service.wait_ended(&id);
    assert_eq!(ended["status"], "Error", "{ended}");
    let message = ended["message"].as_str().unwrap();
    for path in ["/lustre/none/images", "/lustre/none/a b.json", "/lustre/none/$(touch owned)'\""] {
        assert!(message.contains(path), "{message}");
    }
    assert!(!message.contains("/lustre/images"), "what is there is not named: {message}");
    let base = service.sandbox.var("SLURM_BASE_RESULTS_DIR");
    let left = service.sandbox.login(&format!(
        "find {base} -name '*{id}*' -not -path '*/state/*'; ls owned 2>&1 | grep -v 'No such' || true"
    ));
    assert_eq!(left, "", "nothing was staged");
    assert_eq!(service.sandbox.login(&format!("sacct -nX --name tao-job-{id} -o jobid")), "");
}

#[test]
fn an_image_file_that_does_not_exist_takes_no_node() {
    let service = Service::start();
    let mut job = training(1, &json!({}));
    job["image"] = "/lustre/images/none.sqsh".into();
    let live = service.post("/jobs/validate?live=true", &job.to_string()).json()["live"].clone();
    assert_eq!(live["missing_paths"], json!(["/lustre/images/none.sqsh"]), "{live}");
    let ended = service.wait_ended(&service.submit(&job));
    assert_eq!((&ended["status"], &ended["slurm_job_id"]), (&json!("Error"), &json!(null)), "{ended}");
    assert!(ended["message"].as_str().unwrap().contains("/lustre/images/none.sqsh"), "{ended}");
}

#[test]
fn a_job_with_existing_inputs_runs() {
    let service = Service::start();
    let base = service.sandbox.var("SLURM_BASE_RESULTS_DIR");
    let data = format!("{base}/inputs-test/a b");
    service.sandbox.login(&format!("mkdir -p '{data}' && touch '{data}/x.json'"));
    let mut job = command("true");
    job["inputs"] = json!([format!("lustre://{data}/x.json"), format!("slurm://None{data}")]);
    let id = service.submit(&job);
    assert_eq!(service.wait_ended(&id)["status"], "Done");
}

#[test]
fn an_input_without_read_permission_is_reported_as_such() {
    let service = Service::start();
    let base = service.sandbox.var("SLURM_BASE_RESULTS_DIR");
    service.sandbox.login(&format!("mkdir -p {base}/locked && chmod 000 {base}/locked"));
    let mut job = command("true");
    job["inputs"] = json!([format!("{base}/locked/a")]);
    let ended = service.wait_ended(&service.submit(&job));
    service.sandbox.login(&format!("chmod 700 {base}/locked"));
    assert_eq!(ended["status"], "Error");
    assert!(ended["message"].as_str().unwrap().contains("is not readable"), "{ended}");
}
