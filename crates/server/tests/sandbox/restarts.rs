//! Jobs that go on after an attempt that did not succeed, on a real Slurm.

use std::time::Duration;

use serde_json::{Value, json};

use crate::{
    bars::size,
    ending::command,
    service::{Service, until},
};

/// The time limit of each attempt, in seconds.
pub(crate) fn link() -> u64 {
    size(12, 30)
}

/// How far a job counts that goes on over two time limits and a preemption, or over four in full size.
pub(crate) fn goal() -> u64 {
    size(36, 140)
}

pub(crate) fn hours(seconds: u64) -> f64 {
    Duration::from_secs(seconds).as_secs_f64() / 3600.0
}

/// Counts to so many, one a second, and goes on from what it has saved.
pub(crate) fn counting(to: u64, restart: &Value) -> Value {
    let text = format!(
        r#"
        cd "$TAO_API_RESULTS_DIR"; mkdir -p "$TAO_API_JOB_ID"; saved=$TAO_API_JOB_ID/saved
        n=0; if [ -e "$saved" ]; then n=$(cat "$saved"); fi
        echo "from $n" >>"$TAO_API_JOB_ID/starts"
        while ((n < {to})); do sleep 1; n=$((n + 1)); echo "$n" >"$saved.new"; mv "$saved.new" "$saved"; done
    "#
    );
    let mut job = command(&text);
    job["launcher"] = "plain".into();
    job["restart"] = restart.clone();
    job["use_requeue"] = false.into();
    job["resources"] = json!({
        "num_nodes": 4, "gpus_per_node": 8, "cpus_per_task": 64, "time_hours": 0.05, "timeout_hours": hours(link())
    });
    job["backend_details"] = json!({"partition": "scavenge"});
    job
}

pub(crate) fn attempts(service: &Service, id: &str) -> Vec<Value> {
    service.get(&format!("/jobs/{id}/attempts")).json()["attempts"].as_array().unwrap().clone()
}

#[test]
fn a_job_goes_on_over_time_limits_and_a_preemption_from_what_it_has_saved() {
    let service = Service::start();
    let id = service.submit(&counting(goal(), &json!({"on": ["timeout", "preempted"]})));
    service.wait(&id, "its second attempt", |s| s["attempt"] == 2 && s["status"] == "Running");
    let mut other = command("sleep 1");
    other["backend_details"] = json!({"partition": "polar"});
    let winner = service.submit(&other);
    let ended = service.wait_ended(&id);
    assert_eq!(ended["status"], "Done", "{ended}");
    assert_eq!(service.wait_ended(&winner)["status"], "Done");
    let attempts = attempts(&service, &id);
    let said = |part: &str| {
        attempts
            .iter()
            .filter(|one| one["outcome_reason"].as_str().unwrap_or_default().contains(part))
            .count()
    };
    assert!(said("it reached its own time limit") as u64 >= size(2, 4), "{attempts:?}");
    assert_eq!(said("a job of higher priority took its nodes"), 1, "{attempts:?}");
    let dir = format!("/lustre/fsw/portfolios/edgeai/users/tao/results/{id}");
    let starts = service.sandbox.login(&format!("cat {dir}/starts"));
    let starts: Vec<u32> =
        starts.lines().map(|line| line.strip_prefix("from ").unwrap().parse().unwrap()).collect();
    assert_eq!(starts.len(), attempts.len(), "{starts:?}");
    assert!(starts.is_sorted(), "{starts:?}");
    assert_eq!(service.sandbox.login(&format!("squeue --me -h -n tao-job-{id}")), "");
}

#[test]
fn a_job_stops_when_it_has_run_as_long_as_it_may() {
    let service = Service::start();
    let most = 3 * link() + 4;
    let policy = json!({"on": ["timeout"], "max_total_hours": hours(most)});
    let id = service.submit(&counting(1000, &policy));
    let ended = service.wait_ended(&id);
    // On a busy machine an attempt takes longer to end, and two may be all.
    let attempts = ended["attempt"].as_u64().unwrap();
    assert!(ended["status"] == "Error" && (2..=3).contains(&attempts), "{ended}");
    let message = ended["message"].as_str().unwrap();
    assert!(
        message.contains(&format!("Not restarted: it has run for all {most} s of `restart.max_total_hours`")),
        "{message}"
    );
    let elapsed = || {
        let rows = service.sandbox.login(&format!(
            "sacct -X -n -P -o ElapsedRaw,State -S now-1hours --name tao-job-{id},tao-job-{id}-r2,tao-job-{id}-r3"
        ));
        let times = rows.lines().filter(|row| row.contains("FAILED"));
        times.map(|row| row.split('|').next().unwrap().parse::<u64>().unwrap()).collect::<Vec<_>>()
    };
    until("accounting to know all attempts", Duration::from_mins(1), || elapsed().len() as u64 == attempts);
    // Slurm needs a moment to end each, and would let each run for three minutes.
    assert!(elapsed().iter().all(|elapsed| *elapsed < link() + 100), "{:?}", elapsed());
}

#[test]
fn a_task_that_asks_for_it_by_its_exit_code_goes_on_and_one_that_fails_does_not() {
    let service = Service::start_with(&[("TAO_SLURM_RETRY_WAIT", "1s")]);
    let text = r#"
        mkdir -p "$TAO_API_RESULTS_DIR"; cd "$TAO_API_RESULTS_DIR"
        case $TAO_TASK in
        0) if mkdir first; then exit 75; fi ;;
        1) exit 7 ;;
        esac
    "#;
    let mut job = command(text);
    job["array"] = json!({"indices": "0-1"});
    job["restart"] = json!({"exit_codes": [75]});
    let id = service.submit(&job);
    let ended = service.wait_ended(&id);
    assert_eq!(ended["message"], "1 of 2 tasks done, 1 failed.", "{ended}");
    let tasks = service.get(&format!("/jobs/{id}/tasks")).json();
    let of = |task: usize, field: &str| tasks["tasks"][task][field].clone();
    assert_eq!((of(0, "status"), of(0, "attempt")), (json!("done"), json!(2)), "{tasks}");
    assert_eq!((of(1, "exit_code"), of(1, "attempt")), (json!(7), json!(1)), "{tasks}");
}
