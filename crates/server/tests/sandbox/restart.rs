//! Restarts of the service while its jobs run.

use crate::{
    ending::{command, held},
    service::{Service, until},
    states::slurm_id,
};

use std::time::Duration;

/// All Slurm jobs that were submitted with the job's name.
fn slurm_jobs(service: &Service, id: &str) -> Vec<String> {
    let rows =
        service.sandbox.login(&format!("sacct -X -n -P -o JobIDRaw -S now-1hours --name tao-job-{id}"));
    rows.lines().map(str::to_owned).collect()
}

#[test]
fn a_job_ends_correctly_after_the_service_was_killed_while_it_ran() {
    let mut service = Service::start();
    let done = service.submit(&held("echo finished"));
    let failed = service.submit(&held("exit 5"));
    for id in [&done, &failed] {
        service.wait(id, "running", |s| s["status"] == "Running");
    }
    let events = |service: &Service| service.get(&format!("/jobs/{done}/events")).json()["events"].clone();
    let (before, created) = (events(&service), service.status(&done)["created_on"].clone());
    service.kill();
    service.let_go(&done);
    service.let_go(&failed);
    service.spawn();
    assert_eq!(service.wait_ended(&done)["status"], "Done");
    assert_eq!(service.status(&done)["created_on"], created);
    let (before, after) = (before.as_array().unwrap().clone(), events(&service));
    assert!(before.len() >= 2 && after.as_array().unwrap().starts_with(&before), "{before:?} {after}");
    assert_eq!(service.wait_ended(&failed)["status"], "Error");
    for id in [&done, &failed] {
        until("accounting to show the job", Duration::from_secs(30), || !slurm_jobs(&service, id).is_empty());
        assert_eq!(slurm_jobs(&service, id).len(), 1);
    }
}

#[test]
fn jobs_are_submitted_once_when_the_service_is_killed_while_submitting() {
    let mut service = Service::start();
    let ids: Vec<_> = (0..20).map(|_| service.submit(&command("true"))).collect();
    // Some jobs are submitted, some are being submitted, some are not; each must run once.
    service.kill();
    service.spawn();
    // A submission interrupted between its claim and sbatch is repeated after 210 s, when the first cannot have an effect.
    until("the end of all", Duration::from_mins(6), || {
        ids.iter().all(|id| service.status(id)["phase"] == "ended")
    });
    for id in &ids {
        let ended = service.status(id);
        assert_eq!(ended["status"], "Done", "{ended}");
    }
    until("accounting to show all jobs", Duration::from_secs(30), || {
        ids.iter().all(|id| !slurm_jobs(&service, id).is_empty())
    });
    for id in &ids {
        assert_eq!(slurm_jobs(&service, id).len(), 1, "{id}");
    }
}

#[test]
fn a_successful_job_that_slurm_runs_again_does_not_repeat_its_work() {
    let mut service = Service::start();
    let id = service.submit(&held("echo worked"));
    let slurm_id = slurm_id(&service.wait(&id, "running", |s| s["status"] == "Running"));
    service.stop();
    service.let_go(&id);
    // As a controller does that was killed before it saved the end of the job.
    let state = || service.sandbox.login(&format!("squeue -h -t all -o %T -j {slurm_id}"));
    until("its end", Duration::from_secs(30), || state().trim() == "COMPLETED");
    service.sandbox.admin(&["scontrol", "requeue", &slurm_id]);
    until("the second start", Duration::from_mins(2), || {
        service.sandbox.login(&format!("scontrol show job {slurm_id}")).contains("Restarts=1")
            && state().trim() == "COMPLETED"
    });
    service.spawn();
    assert_eq!(service.wait_ended(&id)["status"], "Done");
    let log = service.get(&format!("/jobs/{id}/logs")).text;
    assert_eq!(log.matches("worked").count(), 1, "{log}");
    assert_eq!(service.get(&format!("/jobs/{id}/attempts")).json()["attempts"][0]["requeues"], 0);
}

#[test]
fn a_graceful_stop_leaves_jobs_running() {
    let mut service = Service::start();
    let id = service.submit(&held("true"));
    service.wait(&id, "running", |s| s["status"] == "Running");
    let stopped = service.stop();
    assert!(stopped.success(), "{stopped}: {}", service.log_text());
    service.let_go(&id);
    service.spawn();
    assert_eq!(service.wait_ended(&id)["status"], "Done");
}
