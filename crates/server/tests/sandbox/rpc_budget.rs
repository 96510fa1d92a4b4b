//! A cluster that limits the requests of a user. Slurm 22.05 has no limit; there the service's own restraint is checked.

use std::time::{Duration, Instant};

use serde_json::json;

use crate::{bars::size, ending::command, options::service_with, service::until};

const BURST: u64 = 25;

/// The full form is for a sandbox with `SANDBOX_FEW_REQUESTS=40:8:1`.
#[test]
#[expect(clippy::print_stdout, reason = "it prints its measurement, as the other reliability tests do")]
fn jobs_and_a_sweep_finish_under_a_limit_of_requests() {
    let (jobs, tasks) = (size(20, 1000), size(60, 1000));
    // Less than the fault `slurmctld-few-requests` allows, because the jobs make requests too: each `srun` is one.
    let per_minute = size(60, 240);
    let service = service_with(&format!("rpc_budget = {{ burst = {BURST}, per_minute = {per_minute} }}"));
    let _limit = service.sandbox.fault("slurmctld-few-requests");
    let spent = || service.get("/clusters/sandbox").json()["rpc_budget"]["spent_total"].as_u64().unwrap();
    let (began, before) = (Instant::now(), spent());
    // Slurm 24.11 delays the `srun` of the tasks, too, for minutes.
    let mut job = command("true");
    job["resources"]["time_hours"] = 1.into();
    let mut sweep = job.clone();
    sweep["array"] = json!({"indices": format!("0-{}", tasks - 1)});
    let sweep = service.submit(&sweep);
    let mut ids: Vec<_> = (0..jobs).map(|_| service.submit(&job)).collect();
    ids.push(sweep);
    until("all jobs to end", Duration::from_mins(size(15, 35)), || {
        ids.iter().all(|id| service.status(id)["phase"] == "ended")
    });
    let (made, elapsed) = (spent() - before, began.elapsed().as_secs());
    for id in &ids {
        assert_eq!(service.status(id)["status"], "Done", "{}", service.status(id));
    }
    let allowed = BURST + elapsed * per_minute / 60 + 1;
    assert!((jobs..=allowed).contains(&made), "{made} requests in {elapsed} s, {allowed} allowed");
    println!("{jobs} jobs and {tasks} tasks: {made} requests of the service in {elapsed} s");
}
