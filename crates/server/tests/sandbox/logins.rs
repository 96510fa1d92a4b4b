//! A cluster that no longer accepts our key.

use std::{
    fs,
    os::unix::fs::PermissionsExt,
    process::{Child, Command, Stdio},
    time::Duration,
};

use crate::{
    ending::command,
    service::{Service, until},
};

/// A worker process beside the service.
struct Worker(Child);

impl Drop for Worker {
    fn drop(&mut self) {
        self.0.kill().unwrap();
        self.0.wait().unwrap();
    }
}

#[test]
fn an_api_process_reports_a_rejected_key_that_only_the_worker_has_tried() {
    let mut service = Service::prepare(&[]);
    let (right, key) = (service.sandbox.var("SSH_KEY_PATH").to_owned(), service.log.with_file_name("key"));
    let wrong = service.log.with_file_name("wrong");
    let made = Command::new("ssh-keygen").args(["-q", "-t", "ed25519", "-N", "", "-f"]).arg(&wrong).output();
    assert!(made.unwrap().status.success());
    fs::copy(&right, &key).unwrap();
    fs::set_permissions(&key, fs::Permissions::from_mode(0o600)).unwrap();
    service.set("SSH_KEY_PATH", key.to_str().unwrap());
    // It runs no commands on the cluster, so it knows only what the worker writes to the database.
    service.role = "api";
    service.spawn();
    let mut worker = service.command(&["serve", "--role", "worker"]);
    let _worker = Worker(worker.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap());
    let id = service.submit(&command("sleep 300"));
    service.wait(&id, "running", |s| s["status"] == "Running");
    let state = || service.get("/clusters/sandbox").json()["state"].clone();
    assert_eq!(state(), "ok");

    fs::copy(&wrong, &key).unwrap();
    drop(["login1-cut", "login2-cut"].map(|name| service.sandbox.fault(name)));
    until("the refusal", Duration::from_secs(30), || state() == "auth_required");
    assert_eq!(service.status(&id)["status"], "Running");
    fs::copy(&right, &key).unwrap();
    until("the login", Duration::from_secs(30), || state() == "ok");
    service.post(&format!("/jobs/{id}/cancel"), "");
    assert_eq!(service.wait_ended(&id)["status"], "Canceled");
}
