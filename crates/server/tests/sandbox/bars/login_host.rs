//! A login host that fails, with all its sessions.

use std::time::{Duration, Instant};

use serde_json::Value;

use crate::{
    bars::{jobs, pid_of, revive, signal, size},
    ending::command,
    service::{Service, until},
};

/// A host that is down, with all its processes, until this is dropped.
struct Dead<'a>(&'a Service);

impl<'a> Dead<'a> {
    fn host(service: &'a Service, name: &str) -> Self {
        signal("KILL", &pid_of(&service.sandbox, &format!("sshd-{name}.holder")));
        Self(service)
    }
}

impl Drop for Dead<'_> {
    fn drop(&mut self) {
        revive(&self.0.sandbox);
    }
}

fn host(service: &Service, index: usize) -> Value {
    service.get("/clusters/sandbox").json()["login_hosts"][index].clone()
}

/// How long it takes until this host answers a poll. An answer of the other host may still arrive after its failure.
fn next_answer(service: &Service, index: usize) -> Duration {
    let polled = |service: &Service| service.get("/clusters/sandbox").json()["poll"]["polled_on"].to_string();
    let (began, before) = (Instant::now(), polled(service));
    until("an answer", Duration::from_secs(10), || {
        polled(service) != before && host(service, index)["state"] == "up"
    });
    began.elapsed()
}

#[test]
#[expect(clippy::print_stdout, reason = "shown with the test: the figures of docs/reliability.md")]
fn the_service_fails_over_from_a_dead_login_host_within_ten_seconds_without_effect_on_jobs() {
    let count = size(5, 20);
    let service = Service::start();
    let mut job = command("sleep 1800");
    job["resources"]["time_hours"] = Value::from(0.6_f64);
    let ids: Vec<_> = (0..count).map(|_| service.submit(&job)).collect();
    for id in &ids {
        service.wait(id, "running", |s| s["status"] == "Running");
    }
    assert_eq!(host(&service, 0)["state"], "up");
    let running = || {
        let jobs = jobs(&service);
        assert!(
            jobs.iter()
                .all(|job| job["status"] == "Running" || ids.iter().all(|id| job["id"] != id.as_str())),
            "{jobs:?}"
        );
    };

    let dead = Dead::host(&service, "login1");
    let over = next_answer(&service, 1);
    running();
    let meanwhile = service.submit(&command("true"));
    assert_eq!(service.wait_ended(&meanwhile)["status"], "Done");
    for id in &ids {
        service.wait(id, "news by the other host", |s| s["stale"] == false);
    }
    drop(dead);

    // A host that is up again is used as soon as it is needed.
    let dead = Dead::host(&service, "login2");
    let returned = next_answer(&service, 0);
    running();
    drop(dead);
    println!("{count} jobs: answered by host 2 after {over:?}, by host 1 again after {returned:?}");
    for id in &ids {
        service.post(&format!("/jobs/{id}/cancel"), "");
    }
    for id in &ids {
        assert_eq!(service.wait_ended(id)["status"], "Canceled");
    }
}
