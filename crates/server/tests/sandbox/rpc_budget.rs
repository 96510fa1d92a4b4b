//! A cluster that limits the requests of a user. Slurm 22.05 has no limit; there the service's own restraint is checked.

use std::{
    fs,
    time::{Duration, Instant},
};

use crate::{cluster::Sandbox, ending::command, options::service_with, service::until};

const JOBS: u64 = 60;
/// What the fault `slurmctld-few-requests` allows.
const BURST: u64 = 40;
const PER_MINUTE: u64 = 60;

/// The requests of the login user since the controller started.
fn requests(sandbox: &Sandbox) -> u64 {
    let text = sandbox.admin(&["sdiag"]);
    let by_user = text.split("by user").nth(1).unwrap_or_default();
    let row = by_user.lines().map(str::trim).find(|line| line.starts_with("tao "));
    row.and_then(|row| row.split("count:").nth(1)?.split_whitespace().next()?.parse().ok()).unwrap_or(0)
}

#[test]
fn jobs_finish_within_the_limit_of_the_site_and_slurm_refuses_nothing() {
    let service = service_with(&format!("rpc_budget = {{ burst = {BURST}, per_minute = {PER_MINUTE} }}"));
    let log = service.sandbox.dir.join("log/slurm/slurmctld.log");
    let logged = fs::read(&log).unwrap().len();
    let _limit = service.sandbox.fault("slurmctld-few-requests");
    let (began, before) = (Instant::now(), requests(&service.sandbox));
    let ids: Vec<_> = (0..JOBS).map(|_| service.submit(&command("true"))).collect();
    until("all jobs to end", Duration::from_mins(4), || {
        ids.iter().all(|id| service.status(id)["phase"] == "ended")
    });
    let made = requests(&service.sandbox) - before;
    let allowed = BURST + began.elapsed().as_secs() * PER_MINUTE / 60;
    for id in &ids {
        assert_eq!(service.status(id)["status"], "Done", "{}", service.status(id));
    }
    assert!((JOBS..=allowed).contains(&made), "{made} requests, {allowed} allowed");
    let log = fs::read(&log).unwrap();
    let log = String::from_utf8_lossy(&log[logged.min(log.len())..]).into_owned();
    let refused: Vec<_> = log.lines().filter(|line| line.contains("rate limit exceeded")).collect();
    assert_eq!(refused, Vec::<&str>::new());
    let seen = service.get("/clusters/sandbox").json()["rpc_budget"].clone();
    assert_eq!((&seen["burst"], &seen["per_minute"]), (&BURST.into(), &PER_MINUTE.into()), "{seen}");
    assert!(seen["spent_total"].as_u64().unwrap() >= made, "{made} requests: {seen}");
}
