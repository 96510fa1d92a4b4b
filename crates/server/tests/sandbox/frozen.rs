//! A cluster that does not answer at all: its login hosts accept connections and say nothing, and the sessions that were
//! open hang.

use std::{fs, process::Command, time::Instant};

use serde_json::{Value, json};

use crate::{
    cluster::Sandbox,
    ending::{command, training},
    service::Service,
};

/// All processes of both login hosts' sshds, those of open sessions too, stopped until this is dropped.
pub(crate) struct Frozen(Vec<String>);

impl Frozen {
    pub(crate) fn new(sandbox: &Sandbox) -> Self {
        let mut pids = Vec::new();
        for host in ["login1", "login2"] {
            // The pid, and when the process began.
            let listener = fs::read_to_string(sandbox.file(&format!("run/sshd-{host}.pid"))).unwrap();
            let mut found = vec![listener.split_whitespace().next().unwrap().to_owned()];
            // The listener first: then there are no new ones.
            while let Some(pid) = found.pop() {
                signal("STOP", &pid);
                let children = Command::new("pgrep").args(["-P", &pid]).output().unwrap();
                found.extend(String::from_utf8(children.stdout).unwrap().lines().map(str::to_owned));
                pids.push(pid);
            }
        }
        Self(pids)
    }
}

impl Drop for Frozen {
    fn drop(&mut self) {
        self.0.iter().for_each(|pid| signal("CONT", pid));
    }
}

fn signal(name: &str, pid: &str) {
    // A session may have ended by itself.
    let _ = Command::new("kill").args([&format!("-{name}"), pid]).status().unwrap();
}

#[test]
#[expect(clippy::print_stdout, reason = "shown with the test, for whoever asks how long it took")]
fn a_frozen_cluster_holds_up_no_answer_and_changes_no_job() {
    let service = Service::start_with(&[("TAO_SLURM_POLL_MAX", "2s")]);
    let id = service.submit(&training(40, &json!({"epoch_seconds": 1})));
    service.wait(&id, "an epoch", |s| s["progress"]["epoch"].is_u64());
    let frozen = Frozen::new(&service.sandbox);
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
