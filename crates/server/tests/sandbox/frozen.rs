//! A cluster that does not answer at all: its login hosts accept connections and say nothing, and the sessions that were
//! open hang.

use std::{fs, process::Command, time::Instant};

use serde_json::{Value, json};

use crate::{
    ending::{command, training},
    service::Service,
};

/// All processes of both sshds, stopped until this is dropped.
pub(crate) struct Frozen(Vec<String>);

impl Frozen {
    pub(crate) fn new(service: &Service) -> Self {
        let run = format!("{}/run", service.sandbox.var("SANDBOX_DIR"));
        let mut pids = Vec::new();
        for host in ["login1", "login2"] {
            let text = fs::read_to_string(format!("{run}/sshd-{host}.pid")).unwrap();
            with_children(text.split_whitespace().next().unwrap(), &mut pids);
        }
        let frozen = Self(pids);
        frozen.signal("-STOP");
        frozen
    }

    fn signal(&self, signal: &str) {
        // A session that has ended meanwhile needs no signal.
        let _gone = Command::new("kill").arg(signal).args(&self.0).output().unwrap();
    }
}

impl Drop for Frozen {
    fn drop(&mut self) {
        self.signal("-CONT");
    }
}

fn with_children(pid: &str, pids: &mut Vec<String>) {
    pids.push(pid.to_owned());
    let children = Command::new("pgrep").args(["-P", pid]).output().unwrap();
    for child in String::from_utf8_lossy(&children.stdout).lines() {
        with_children(child, pids);
    }
}

#[test]
#[expect(clippy::print_stdout, reason = "shown with the test, for whoever asks how long it took")]
fn a_frozen_cluster_holds_up_no_answer_and_changes_no_job() {
    let service = Service::start_with(&[("TAO_SLURM_POLL_MAX", "2s")]);
    let id = service.submit(&training(40, &json!({"epoch_seconds": 1})));
    service.wait(&id, "an epoch", |s| s["progress"]["epoch"].is_u64());
    let frozen = Frozen::new(&service);
    let stale = service.wait(&id, "staleness", |s| s["stale"] == true);
    assert_eq!((&stale["status"], &stale["phase"]), (&json!("Running"), &json!("running")), "{stale}");

    let paths = [
        "/jobs".to_owned(),
        format!("/jobs/{id}"),
        format!("/jobs/{id}/status"),
        format!("/jobs/{id}/events"),
        format!("/jobs/{id}/attempts"),
        format!("/jobs/{id}/script"),
        "/clusters".to_owned(),
        "/clusters/sandbox".to_owned(),
        "/livez".to_owned(),
        "/readyz".to_owned(),
    ];
    for path in &paths {
        let began = Instant::now();
        let answer = service.get(path);
        // How long it took is for the trace: the machine's load is nobody's fault.
        println!("{path}: {:?}", began.elapsed());
        assert_eq!(answer.status, 200, "{path}: {}", answer.text);
    }
    let accepted = service.submit(&command("true"));
    assert_eq!(service.status(&accepted)["status"], "Pending", "what is sent now is kept for later");
    drop(frozen);

    service.wait(&id, "news", |s| s["stale"] == false && s["status"] == "Running");
    let ended: Value = service.wait(&accepted, "the end", |s| s["phase"] == "ended");
    assert_eq!(ended["status"], "Done", "{ended}");
    service.post(&format!("/jobs/{id}/cancel"), "");
    assert_eq!(service.wait_ended(&id)["status"], "Canceled");
}
