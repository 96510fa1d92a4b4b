//! Clusters managed by the API: a real cluster is added to running processes, used, changed and removed.

use std::{
    fs,
    os::unix::fs::PermissionsExt,
    path::Path,
    process::{Child, Stdio},
    time::Duration,
};

use serde_json::{Value, json};
use tempfile::TempDir;

use crate::{
    cluster::sql,
    ending::{command, held},
    service::{Service, until},
};

const PATIENCE: Duration = Duration::from_secs(15);

/// A service with a key directory that contains the sandbox's key.
pub(crate) fn with_keys(changed: &[(&str, &str)]) -> (Service, TempDir) {
    let keys = tempfile::tempdir().unwrap();
    let directory = keys.path().to_str().unwrap().to_owned();
    let changed = [&[("TAO_SLURM_SSH_KEY_DIRECTORY", directory.as_str())], changed].concat();
    let service = Service::prepare(&changed);
    put_key(&service, keys.path());
    (service, keys)
}

fn put_key(service: &Service, directory: &Path) {
    let key = directory.join("the-key");
    fs::copy(service.sandbox.var("SSH_KEY_PATH"), &key).unwrap();
    fs::set_permissions(&key, fs::Permissions::from_mode(0o600)).unwrap();
}

/// The sandbox as a document for the API.
pub(crate) fn document(service: &Service, name: &str) -> Value {
    let var = |name: &str| service.sandbox.var(name);
    let list = |name: &str| var(name).split(',').map(str::to_owned).collect::<Vec<_>>();
    let known = fs::read_to_string(var("SSH_KNOWN_HOSTS")).unwrap();
    let lines: Vec<&str> = known.lines().filter(|line| !line.is_empty() && !line.starts_with('#')).collect();
    json!({
        "name": name, "user": var("SLURM_USER"), "hosts": list("SLURM_HOSTNAME"), "ssh_key": "the-key", "host_keys": lines,
        "base_results_dir": var("SLURM_BASE_RESULTS_DIR"), "account": var("SLURM_ACCOUNT"),
        "partitions": list("SLURM_PARTITION"),
    })
}

struct Worker(Child);

impl Worker {
    /// A worker process with its own log.
    fn start(service: &Service, log: &Path) -> Self {
        let mut serve = service.command(&["serve", "--role", "worker"]);
        let log_file = fs::File::create(log).unwrap();
        let worker = Self(serve.stdout(Stdio::null()).stderr(log_file).spawn().unwrap());
        until("the worker to run", Duration::from_secs(30), || has_line(log, "the worker is running"));
        worker
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn has_line(log: &Path, what: &str) -> bool {
    fs::read_to_string(log).unwrap().contains(what)
}

#[test]
fn a_cluster_added_by_an_admin_is_used_by_running_processes_until_it_is_removed() {
    let (mut service, keys) = with_keys(&[]);
    service.unset("SLURM_HOSTNAME");
    let log = keys.path().join("worker.log");
    let _worker = Worker::start(&service, &log);
    service.role = "api";
    service.spawn();
    assert_eq!(service.get("/clusters").json(), json!({"clusters": [], "unusable": []}));
    assert_eq!(service.post("/jobs", &command("true").to_string()).status, 422, "there is no cluster");

    let cluster = document(&service, "kept");
    let added = service.post("/clusters", &cluster.to_string());
    assert_eq!(added.status, 201, "{}", added.text);
    assert_eq!((&added.json()["source"], &added.json()["is_default"]), (&json!("api"), &json!(true)));
    assert!(!service.get("/clusters/kept").text.contains(keys.path().to_str().unwrap()), "no path of a key");
    let seen = service.post("/clusters/kept/preflight", "").json();
    assert_ne!(seen["outcome"], "fail", "{seen}");

    let id = service.submit(&held("echo it ran"));
    service.wait(&id, "running", |status| status["status"] == "Running");
    let refused = service.delete("/clusters/kept");
    assert_eq!(
        (refused.status, &refused.json()["code"]),
        (409, &json!("cluster_in_use")),
        "{}",
        refused.text
    );
    assert!(refused.text.contains("1 active job"), "{}", refused.text);
    let change = |key: &str, value: Value| {
        let mut changed = cluster.clone();
        changed[key] = value;
        service.put_with("/clusters/kept", &[("if-match", "*")], &changed.to_string())
    };
    let refused = change("base_results_dir", json!("/lustre/elsewhere"));
    assert_eq!(
        (refused.status, &refused.json()["code"]),
        (409, &json!("cluster_in_use")),
        "{}",
        refused.text
    );
    assert_eq!(change("sessions", json!(1)).status, 200, "its jobs are found as before");
    service.let_go(&id);
    let ended = service.wait_ended(&id);
    assert_eq!(ended["status"], "Done", "{ended}");
    assert!(service.get(&format!("/jobs/{id}/logs?stream=out")).text.contains("it ran"));

    assert_eq!(service.delete("/clusters/kept").status, 204);
    until("the worker to remove it", PATIENCE, || has_line(&log, "the cluster was removed"));
    assert_eq!(service.get("/clusters/kept").status, 404);
    assert_eq!(service.get(&format!("/jobs/{id}")).json()["status"], "Done", "its jobs can be read");
    let unread = service.get(&format!("/jobs/{id}/logs"));
    assert_eq!((unread.status, &unread.json()["code"]), (409, &json!("cluster_gone")), "{}", unread.text);
}

#[test]
fn an_invalid_row_or_a_missing_key_makes_only_that_cluster_unavailable() {
    let (mut service, keys) = with_keys(&[]);
    service.spawn();
    let cluster = document(&service, "kept");
    assert_eq!(service.post("/clusters", &cluster.to_string()).status, 201);
    let on = |name: &str| {
        let mut job = command("true");
        job["backend_details"] = json!({"cluster_name": name});
        job
    };

    sql(&service.database_url, "update clusters set settings = settings || '{\"num_gpus\": \"many\"}'");
    let unusable = || service.get("/clusters").json()["unusable"].clone();
    until("the bad row to be shown", PATIENCE, || unusable()[0]["name"] == "kept");
    assert!(unusable()[0]["reason"].as_str().unwrap().contains("many"), "{}", unusable());
    assert_eq!(service.get("/clusters/kept").json()["code"], "cluster_unusable");
    assert_eq!(service.post("/jobs", &on("kept").to_string()).status, 422);
    assert_eq!(
        service.wait_ended(&service.submit(&on("sandbox")))["status"],
        "Done",
        "other clusters are not affected"
    );
    let mended = service.put_with("/clusters/kept", &[("if-match", "*")], &cluster.to_string());
    assert_eq!(mended.status, 200, "{}", mended.text);

    fs::remove_file(keys.path().join("the-key")).unwrap();
    let state = || service.get("/clusters/kept").json();
    until("the missing key to be shown", PATIENCE, || state()["state"] == "unavailable");
    assert!(state()["unavailable"].as_str().unwrap().contains("the-key"), "{}", state());
    put_key(&service, keys.path());
    until("the key to be found again", PATIENCE, || state()["unavailable"].is_null());
    assert_eq!(service.wait_ended(&service.submit(&on("kept")))["status"], "Done");
}
