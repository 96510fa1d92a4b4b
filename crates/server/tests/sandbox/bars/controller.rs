//! A frozen controller: it accepts connections and does not respond.

use std::time::{Duration, Instant};

use serde_json::Value;

use crate::{
    bars::{jobs, pid_of, signal, size},
    ending::command,
    service::{Service, until},
};

/// A process that is stopped until this is dropped.
struct Stopped(String);

impl Stopped {
    fn new(pid: String) -> Self {
        signal("STOP", &pid);
        Self(pid)
    }
}

impl Drop for Stopped {
    fn drop(&mut self) {
        signal("CONT", &self.0);
    }
}

fn statuses(service: &Service) -> Vec<(Value, Value, Value)> {
    let of = |job: Value| (job["id"].clone(), job["status"].clone(), job["phase"].clone());
    let mut statuses: Vec<_> = jobs(service).into_iter().map(of).collect();
    statuses.sort_by_key(|(id, ..)| id.to_string());
    statuses
}

fn connects(service: &Service) -> u64 {
    service.get("/clusters/sandbox").json()["ssh"]["connects_total"].as_u64().unwrap()
}

#[test]
#[expect(clippy::print_stdout, reason = "shown with the test: the figures of docs/reliability.md")]
fn a_frozen_controller_changes_no_status_and_causes_few_connects() {
    let (runners, frozen_for) = (size(16, 100), Duration::from_secs(size(20, 180)));
    let waiters = runners / 4;
    let service = Service::start();
    // Most of them run, and leave no whole node free for the others.
    let long = frozen_for.as_secs() + 1800;
    let mut job = command(&format!("sleep {long}"));
    job["resources"]["time_hours"] = Value::from(0.6_f64);
    job["resources"]["cpus_per_task"] = (64 / runners.div_ceil(4)).into();
    for _ in 0..runners {
        service.submit(&job);
    }
    let in_phase = |phase: &str| jobs(&service).iter().filter(|job| job["phase"] == phase).count() as u64;
    until("the jobs to run", Duration::from_mins(2), || in_phase("running") == runners);
    job["resources"]["cpus_per_task"] = 64.into();
    for _ in 0..waiters {
        service.submit(&job);
    }
    until("the others to wait", Duration::from_mins(1), || in_phase("in_queue") == waiters);
    let before = statuses(&service);
    let id = before[0].0.as_str().unwrap().to_owned();
    let (connected, began) = (connects(&service), Instant::now());
    // Many submissions and polls so far, over the worker's two sessions; each may have reconnected once.
    assert!(connected <= 4, "{connected} connects while nothing was wrong");
    let frozen = Stopped::new(pid_of(&service.sandbox, "slurmctld.pid"));
    let mut stale_after = None;
    until("the time to pass", frozen_for + Duration::from_secs(5), || {
        assert_eq!(statuses(&service), before, "a missing response must not change a status");
        if stale_after.is_none() && service.status(&id)["stale"] == true {
            stale_after = Some(began.elapsed());
        }
        began.elapsed() >= frozen_for
    });
    let stale_after = stale_after.expect("never stale");
    let cost = connects(&service) - connected;
    let minutes = began.elapsed().as_secs().div_ceil(60);
    assert!(cost <= 2 * 2 * minutes, "{cost} connects to two hosts in {minutes} minutes");
    drop(frozen);

    let back = Instant::now();
    until("fresh data", Duration::from_secs(30), || service.status(&id)["stale"] == false);
    let back_after = back.elapsed();
    assert_eq!(statuses(&service), before, "the jobs have continued meanwhile");
    let after: Vec<(Value, Value, Value)> = statuses(&service);
    println!(
        "{runners} jobs that ran and {waiters} that waited, frozen for {frozen_for:?}: stale after {stale_after:?}, right {back_after:?} after its return, \
         {cost} connects"
    );
    for (job, ..) in after {
        service.post(&format!("/jobs/{}/cancel", job.as_str().unwrap()), "");
    }
    until("all jobs to end", Duration::from_mins(2), || {
        jobs(&service).iter().all(|job| job["phase"] == "ended" && job["status"] == "Canceled")
    });
}
