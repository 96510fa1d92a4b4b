//! Attempts that queue the next one ahead, on a real Slurm.

use std::time::Duration;

use serde_json::{Value, json};
use test_case::test_case;

use crate::{
    bars::size,
    cluster::Sandbox,
    ending::{command, held},
    restarts::{attempts, counting, goal, link},
    service::{Service, until},
};

/// A job that goes on over its time limits.
fn chained(to: u64) -> Value {
    let mut job = counting(to, &json!({"on": ["timeout"], "prequeue": true}));
    job["resources"]["num_nodes"] = 1.into();
    job["resources"]["gpus_per_node"] = 0.into();
    job["resources"]["cpus_per_task"] = 1.into();
    job["backend_details"] = json!({"partition": "polar"});
    job.as_object_mut().unwrap().remove("use_requeue");
    job
}

/// Goes to the results of the job.
const ENTER: &str =
    r#"mkdir -p "$TAO_API_RESULTS_DIR/$TAO_API_JOB_ID"; cd "$TAO_API_RESULTS_DIR/$TAO_API_JOB_ID""#;

/// The Slurm jobs of a job in the queue: "name state".
fn queued(service: &Service, id: &str) -> Vec<String> {
    let rows = service.sandbox.login("squeue --me -h -o '%j %T'");
    rows.lines().filter(|row| row.contains(id)).map(str::to_owned).collect()
}

fn results(service: &Service, id: &str) -> String {
    format!("{}/results/{id}", service.sandbox.var("SLURM_BASE_RESULTS_DIR"))
}

#[test]
fn a_chain_of_time_limits_goes_through_while_the_service_is_away() {
    let mut service = Service::start();
    let id = service.submit(&chained(goal()));
    service.wait(&id, "running", |s| s["status"] == "Running");
    let next = format!("tao-job-{id}-r2 PENDING");
    until("its next attempt", Duration::from_mins(1), || queued(&service, &id).contains(&next));
    service.stop();
    until("the end of the chain", Duration::from_mins(5), || queued(&service, &id).is_empty());
    let dir = results(&service, &id);
    assert_eq!(service.sandbox.login(&format!("cat {dir}/saved")).trim(), goal().to_string());
    let starts = service.sandbox.login(&format!("cat {dir}/starts"));
    assert!(starts.lines().count() as u64 >= size(3, 5), "{starts}");
    service.spawn();
    let ended = service.wait_ended(&id);
    assert_eq!(ended["status"], "Done", "{ended}");
    let attempts = attempts(&service, &id);
    assert_eq!(attempts.len(), starts.lines().count(), "each start is an attempt: {attempts:?}");
    let outcomes: Vec<&Value> = attempts.iter().map(|one| &one["outcome"]).collect();
    assert!(outcomes.iter().rev().skip(1).all(|outcome| *outcome == "retried"), "{outcomes:?}");
    assert_eq!(queued(&service, &id), Vec::<String>::new());
    assert_eq!(service.get("/clusters/sandbox").json()["orphans"]["count"], 0);
}

/// The states of a job's attempts in accounting.
fn states(service: &Service, id: &str) -> Vec<String> {
    let names = format!("tao-job-{id},tao-job-{id}-r2,tao-job-{id}-r3,tao-job-{id}-r4");
    let rows = service.sandbox.login(&format!("sacct -X -n -P -o State -S now-1hours --name {names}"));
    rows.lines().map(str::to_owned).collect()
}

#[test]
fn a_chain_goes_on_after_a_preemption_and_a_limit_of_slurm_while_the_service_is_away() {
    let mut service = Service::start();
    // Each attempt but the third goes on until it is ended.
    let text = r#"
        echo start >>starts
        if [ "$(wc -l <starts)" = 3 ]; then exit 0; fi
        sleep 12; touch "old.$(wc -l <starts)"; exec sleep 600
    "#;
    let mut job = chained(1);
    job["command"] = format!("{ENTER}{text}").into();
    job["restart"]["on"] = json!(["timeout", "preempted"]);
    job["resources"]["time_hours"] = 0.1.into();
    job["resources"].as_object_mut().unwrap().remove("timeout_hours");
    job["backend_details"] = json!({"partition": "scavenge"});
    let id = service.submit(&job);
    service.wait(&id, "running", |s| s["status"] == "Running");
    let next = format!("tao-job-{id}-r2 PENDING");
    until("its next attempt", Duration::from_mins(1), || queued(&service, &id).contains(&next));
    service.stop();
    let dir = results(&service, &id);
    let exists =
        |file: &str| service.sandbox.login(&format!("test -e {dir}/{file} && echo yes || true")) == "yes";
    until("an attempt that is not short", Duration::from_mins(1), || exists("old.1"));
    service.sandbox.login("srun -p polar -N4 --exclusive -t 1 true");
    let second = format!("tao-job-{id}-r2");
    until("the second attempt", Duration::from_mins(1), || {
        queued(&service, &id).contains(&format!("{second} RUNNING"))
    });
    // Its script would end it before Slurm does. Slurm's limits have whole minutes.
    let number = service.sandbox.login(&format!("squeue --me -h -n {second} -o %i"));
    service.sandbox.admin(&["scontrol", "update", &format!("JobId={number}"), "TimeLimit=1"]);
    until("the end of the chain", Duration::from_mins(6), || queued(&service, &id).is_empty());
    let starts = service.sandbox.login(&format!("cat {dir}/starts"));
    assert_eq!(starts.lines().count(), 3, "{starts}");
    service.spawn();
    let ended = service.wait_ended(&id);
    assert_eq!((&ended["status"], &ended["attempt"]), (&json!("Done"), &json!(3)), "{ended}");
    let outcomes: Vec<Value> = attempts(&service, &id).iter().map(|one| one["outcome"].clone()).collect();
    assert_eq!(outcomes, ["retried", "retried", "done"]);
    let expected = ["PREEMPTED", "TIMEOUT", "COMPLETED"];
    until(
        &format!("accounting to show {expected:?}, not {:?}", states(&service, &id)),
        Duration::from_mins(1),
        || states(&service, &id).starts_with(&expected.map(str::to_owned)),
    );
}

#[test]
fn a_chain_does_not_repeat_a_job_that_has_reported_its_end() {
    let mut service = Service::start();
    let text = r#"
        echo start >>starts
        echo '{"status": "SUCCESS", "message": "all is done"}' >>status.json
        exec sleep 600
    "#;
    let mut job = chained(1);
    job["command"] = format!("{ENTER}{text}").into();
    let id = service.submit(&job);
    let next = format!("tao-job-{id}-r2 PENDING");
    until("its next attempt", Duration::from_mins(1), || queued(&service, &id).contains(&next));
    service.stop();
    until("the end of the chain", Duration::from_mins(5), || queued(&service, &id).is_empty());
    service.spawn();
    assert_eq!(service.wait_ended(&id)["status"], "Done");
    assert_eq!(service.sandbox.login(&format!("cat {}/starts", results(&service, &id))), "start");
}

#[test]
fn the_service_adopts_the_attempt_that_already_waits() {
    let service = Service::start();
    let id = service.submit(&chained(link() * 3 / 2));
    let ended = service.wait_ended(&id);
    assert_eq!((&ended["status"], &ended["attempt"]), (&json!("Done"), &json!(2)), "{ended}");
    let script = |no: u32| service.get(&format!("/jobs/{id}/script?attempt={no}")).text;
    assert!(script(2) == script(1), "both run the script that was submitted");
    let times = attempts(&service, &id);
    assert!(times[1]["submitted_on"].as_str() < times[0]["ended_on"].as_str(), "{times:?}");
    let rows =
        || service.sandbox.login(&format!("sacct -X -n -P -o JobID -S now-1hours --name tao-job-{id}-r2"));
    until("accounting to know it", Duration::from_mins(1), || rows().lines().count() == 1);
}

/// Slurm deletes the jobs whose dependency can never be satisfied, until this is dropped.
struct Killing<'a>(&'a Sandbox);

impl<'a> Killing<'a> {
    fn start(sandbox: &'a Sandbox) -> Self {
        sandbox.admin(&[
            "sh",
            "-ec",
            "echo DependencyParameters=kill_invalid_depend >>/etc/slurm/slurm.conf; scontrol reconfigure",
        ]);
        let set = sandbox.admin(&["scontrol", "show", "config"]);
        assert!(set.contains("= kill_invalid_depend"), "{set}");
        Self(sandbox)
    }
}

impl Drop for Killing<'_> {
    fn drop(&mut self) {
        self.0.admin(&[
            "sh",
            "-ec",
            "sed -i /^DependencyParameters=/d /etc/slurm/slurm.conf; scontrol reconfigure",
        ]);
    }
}

#[test_case("true", "Done", false ; "a success")]
#[test_case("true", "Done", true ; "a success with kill_invalid_depend")]
#[test_case("exit 7", "Error", false ; "a failure of its own")]
fn after_any_other_end_no_attempt_is_left(program: &str, status: &str, kills: bool) {
    let service = Service::start();
    let _killing = kills.then(|| Killing::start(&service.sandbox));
    let mut job = held(program);
    job["restart"] = json!({"on": ["timeout"], "prequeue": true});
    let id = service.submit(&job);
    let next = format!("tao-job-{id}-r2 PENDING");
    until("its next attempt", Duration::from_mins(1), || queued(&service, &id).contains(&next));
    service.let_go(&id);
    let ended = service.wait_ended(&id);
    assert_eq!((&ended["status"], &ended["attempt"]), (&json!(status), &json!(1)), "{ended}");
    until("an empty queue", Duration::from_mins(1), || queued(&service, &id).is_empty());
    // Its owner sends it again: under a number of its own.
    if status == "Error" {
        assert_eq!(service.post(&format!("/jobs/{id}/retry"), "").status, 202);
        let ended = service.wait_ended(&id);
        assert_eq!((&ended["status"], &ended["attempt"]), (&json!("Error"), &json!(3)), "{ended}");
    }
}

#[test]
fn a_cancellation_takes_the_next_attempt_first() {
    let service = Service::start();
    let id = service.submit(&chained(1000));
    let next = format!("tao-job-{id}-r2 PENDING");
    until("its next attempt", Duration::from_mins(1), || queued(&service, &id).contains(&next));
    let starts =
        || service.sandbox.login(&format!("cat {}/starts 2>/dev/null || true", results(&service, &id)));
    until("its start", Duration::from_mins(1), || !starts().is_empty());
    assert_eq!(service.post(&format!("/jobs/{id}/cancel"), "").status, 202);
    assert_eq!(service.wait_ended(&id)["status"], "Canceled");
    until("an empty queue", Duration::from_mins(1), || queued(&service, &id).is_empty());
    assert_eq!(starts(), "from 0");
}

#[test]
fn a_job_that_is_paused_goes_on_under_a_number_of_its_own() {
    let service = Service::start();
    let id = service.submit(&chained(link() * 5 / 3));
    let next = format!("tao-job-{id}-r2 PENDING");
    until("its next attempt", Duration::from_mins(1), || queued(&service, &id).contains(&next));
    assert_eq!(service.post(&format!("/jobs/{id}/pause"), "").status, 202);
    service.wait(&id, "paused", |s| s["status"] == "Paused");
    until("an empty queue", Duration::from_mins(1), || queued(&service, &id).is_empty());
    assert_eq!(service.post(&format!("/jobs/{id}/resume"), "").status, 202);
    let ended = service.wait_ended(&id);
    assert_eq!(ended["status"], "Done", "{ended}");
    let numbers: Vec<u64> =
        attempts(&service, &id).iter().map(|one| one["number"].as_u64().unwrap()).collect();
    assert!(numbers.len() >= 2 && numbers[..2] == [1, 3], "{numbers:?}");
}

#[test]
fn no_secret_reaches_the_controller_with_an_attempt_that_is_queued_ahead() {
    let service = Service::start();
    let mut job = command("test \"$TOKEN\" = hunter2-ahead && exec sleep 600");
    job["restart"] = json!({"on": ["timeout"], "prequeue": true});
    job["secret_env_vars"] = json!({"TOKEN": "hunter2-ahead"});
    let id = service.submit(&job);
    let next = format!("tao-job-{id}-r2 PENDING");
    until("its next attempt", Duration::from_mins(1), || queued(&service, &id).contains(&next));
    let spool = service.sandbox.admin(&["scontrol", "show", "config"]);
    let line = spool.lines().find(|line| line.starts_with("StateSaveLocation")).unwrap();
    let spool = line.split('=').nth(1).unwrap().trim();
    let files_with =
        |text: &str| service.sandbox.admin(&["sh", "-c", &format!("grep -rlF -e {text} {spool} || true")]);
    // The controller keeps the scripts and the environments of jobs there. It writes its list of jobs now and then.
    until("the controller to keep it", Duration::from_mins(2), || {
        !files_with(&format!("tao-job-{id}-r2")).is_empty()
    });
    assert_eq!(files_with("hunter2-ahead"), "");
    // So does accounting, with the flags job_script and job_env of the sandbox.
    let kept = || {
        let ids = service.sandbox.admin(&["squeue", "-h", "-o", "%j %A"]);
        let of_job = ids.lines().filter(|line| line.contains(&id)).filter_map(|line| line.split(' ').nth(1));
        let ids = of_job.collect::<Vec<_>>().join(",");
        ["--batch-script", "--env-vars"].map(|what| service.sandbox.admin(&["sacct", "-a", "-j", &ids, what]))
    };
    until("accounting to keep it", Duration::from_mins(2), || {
        let [script, env] = kept();
        script.contains(&id) && env.contains(&format!("SLURM_JOB_NAME=tao-job-{id}-r2"))
    });
    assert!(kept().iter().all(|text| !text.contains("hunter2-ahead")));
    service.post(&format!("/jobs/{id}/cancel"), "");
    assert_eq!(service.wait_ended(&id)["status"], "Canceled");
}
