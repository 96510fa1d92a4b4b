//! Every state of a Slurm job, caused for real, and how the service shows it.

use std::time::Duration;

use serde_json::{Value, json};

use crate::{
    ending::{command, held},
    service::{Service, until},
};

/// The Slurm id in a status document.
pub(crate) fn slurm_id(status: &Value) -> String {
    status["slurm_job_id"].as_str().map_or_else(|| status["slurm_job_id"].to_string(), str::to_owned)
}

pub(crate) fn running(service: &Service, job: &Value) -> (String, Value) {
    let id = service.submit(job);
    let status = service.wait(&id, "running", |s| s["status"] == "Running" && s["nodes"][0].is_string());
    (id, status)
}

/// Resumes a node after the test, even a failed one.
pub(crate) struct Downed<'a> {
    service: &'a Service,
    node: String,
}

impl<'a> Downed<'a> {
    /// A node that fails. Slurm returns a failed node to service as soon as its daemon registers again, unless it is drained.
    pub(crate) fn node(service: &'a Service, node: &str) -> Self {
        let drained = Self::drained(service, node);
        drained.set("state=down");
        drained
    }

    /// A node that takes no more jobs.
    pub(crate) fn drained(service: &'a Service, node: &str) -> Self {
        let drained = Self { service, node: node.to_owned() };
        drained.set("state=drain");
        drained
    }

    fn set(&self, state: &str) {
        let name = format!("nodename={}", self.node);
        self.service.sandbox.admin(&["scontrol", "update", &name, state, "reason=test"]);
    }
}

impl Drop for Downed<'_> {
    fn drop(&mut self) {
        self.set("state=resume");
        until("the node to be back", std::time::Duration::from_secs(30), || {
            let state = self.service.sandbox.login(&format!("sinfo -h -n {} -o %T", self.node));
            state.lines().any(|line| matches!(line, "idle" | "mixed" | "allocated"))
        });
    }
}

/// Each job takes a whole node, so that a fifth is pending.
pub(crate) fn whole_node(mut job: Value) -> Value {
    job["resources"] =
        json!({"num_gpus": 8, "max_num_gpus_per_node": 8, "cpus_per_task": 64, "time_hours": 0.5});
    job
}

#[test]
fn a_job_whose_node_fails_reaches_done_on_another() {
    let service = Service::start();
    // The other nodes are busy, so Slurm can only wait for the failed one, unless it is excluded.
    let holders: Vec<_> = (0..3).map(|_| service.submit(&whole_node(command("exec sleep 600")))).collect();
    for holder in &holders {
        service.wait(holder, "running", |s| s["status"] == "Running");
    }
    let (id, status) = running(&service, &whole_node(held("true")));
    let first = status["nodes"][0].as_str().unwrap().to_owned();
    let down = Downed::node(&service, &first);
    let back = service.wait(&id, "back in the queue", |s| {
        s["status"] == "Pending" && s["message"].as_str().is_some_and(|text| text.contains("excluding"))
    });
    assert!(back["message"].as_str().unwrap().contains(&first), "{back}");
    drop(down);
    let asked = service.sandbox.login(&format!("scontrol -o show job {}", slurm_id(&back)));
    assert!(asked.contains(&format!("ExcNodeList={first} ")), "{asked}");
    service.post(&format!("/jobs/{}/cancel", holders[0]), "");
    service.let_go(&id);
    let ended = service.wait_ended(&id);
    assert_eq!((&ended["status"], slurm_id(&ended)), (&json!("Done"), slurm_id(&status)), "{ended}");
    assert_ne!(ended["nodes"][0], first.as_str(), "{ended}");
    for holder in &holders {
        service.post(&format!("/jobs/{holder}/cancel"), "");
        service.wait_ended(holder);
    }
}

#[test]
fn a_node_failure_that_slurm_does_not_requeue_is_a_new_attempt_without_that_node() {
    let service = Service::start_with(&[("TAO_SLURM_RETRY_WAIT", "1s")]);
    let mut job = held("true");
    job["use_requeue"] = false.into();
    let (id, status) = running(&service, &job);
    let first = status["nodes"][0].as_str().unwrap().to_owned();
    let down = Downed::node(&service, &first);
    let waiting = service.wait(&id, "the retry", |s| s["retry_count"] == 1);
    assert_eq!(waiting["status"], "Pending", "{waiting}");
    drop(down);
    service.let_go(&id);
    let ended = service.wait_ended(&id);
    assert_ne!(ended["nodes"][0], first.as_str(), "{ended}");
    assert_eq!((&ended["status"], &ended["retry_count"]), (&json!("Done"), &json!(1)), "{ended}");
    let whole = service.get(&format!("/jobs/{id}")).json();
    let failed = &whole["backend_details"]["slurm_metadata"]["failed_slurm_job_ids"];
    assert_eq!(
        failed[0].as_str().map(str::to_owned).unwrap_or(failed[0].to_string()),
        slurm_id(&status),
        "{whole}"
    );
}

#[test]
fn a_training_error_is_not_retried_and_the_message_says_why() {
    let service = Service::start();
    let id = service.submit(&command("echo 'ValueError: num_classes must be 20' >&2; exit 1"));
    let ended = service.wait_ended(&id);
    assert_eq!((&ended["status"], &ended["retry_count"]), (&json!("Error"), &json!(0)), "{ended}");
    let message = ended["message"].as_str().unwrap();
    assert!(message.contains("Not retried: the job's code or its specification is wrong."), "{message}");
}

#[test]
fn an_infrastructure_failure_in_the_log_is_retried() {
    let service = Service::start_with(&[("TAO_SLURM_RETRY_WAIT", "1s")]);
    // The first attempt fails like a GPU; the second finds the files of the first.
    let text = "mark=$TAO_API_RESULTS_DIR/$TAO_API_JOB_ID/second
        if [ ! -e \"$mark\" ]; then touch \"$mark\"; echo 'NVRM: Xid (PCI:0000:3b:00): 79, GPU has fallen off the bus.' >&2; exit 1; fi
        echo \"on $(hostname)\"";
    let id = service.submit(&command(text));
    let ended = service.wait_ended(&id);
    assert_eq!((&ended["status"], &ended["retry_count"]), (&json!("Done"), &json!(1)), "{ended}");
}

#[test]
fn an_administrators_scancel_ends_the_job_canceled() {
    let service = Service::start();
    let (id, status) = running(&service, &command("exec sleep 600"));
    service.sandbox.admin(&["scancel", &slurm_id(&status)]);
    let ended = service.wait_ended(&id);
    assert_eq!(ended["status"], "Canceled", "{ended}");
    assert!(ended["message"].as_str().unwrap().contains("not by this service"), "{ended}");
}

#[test]
fn a_time_limit_is_an_error() {
    let service = Service::start();
    let (id, status) = running(&service, &command("exec sleep 600"));
    let soon = service.sandbox.login("date -d '+2 sec' +%FT%T");
    let name = format!("jobid={}", slurm_id(&status));
    service.sandbox.admin(&["scontrol", "update", &name, &format!("EndTime={soon}")]);
    let ended = service.wait_ended(&id);
    assert_eq!((&ended["status"], &ended["slurm_state"]), (&json!("Error"), &json!("TIMEOUT")), "{ended}");
    assert!(ended["message"].as_str().unwrap().contains("time limit"), "{ended}");
    assert_eq!(ended["retry_count"], 0);
}

#[test]
fn a_suspended_job_is_paused_and_continues() {
    let service = Service::start();
    let (id, status) = running(&service, &held("true"));
    service.sandbox.admin(&["scontrol", "suspend", &slurm_id(&status)]);
    let paused = service.wait(&id, "suspended", |s| s["status"] == "Paused");
    assert_eq!(
        (&paused["phase"], &paused["slurm_state"]),
        (&json!("suspended"), &json!("SUSPENDED")),
        "{paused}"
    );
    let answer = service.post(&format!("/jobs/{id}/resume"), "");
    assert_eq!(answer.status, 409, "only Slurm can let it go on: {}", answer.text);
    service.sandbox.admin(&["scontrol", "resume", &slurm_id(&status)]);
    service.let_go(&id);
    assert_eq!(service.wait_ended(&id)["status"], "Done");
}

#[test]
fn a_job_requeued_by_an_administrator_runs_again_under_its_id() {
    let service = Service::start();
    let (id, status) = running(&service, &held("true"));
    // So that Slurm does not start it again before the service has seen it pending.
    let closed = service.sandbox.change_partition("polar", "state=down", "state=up");
    service.sandbox.admin(&["scontrol", "requeue", &slurm_id(&status)]);
    let back = service.wait(&id, "back in the queue", |s| s["status"] == "Pending");
    assert_eq!(back["phase"], "in_queue", "{back}");
    drop(closed);
    service.let_go(&id);
    let ended = service.wait_ended(&id);
    assert_eq!((&ended["status"], slurm_id(&ended)), (&json!("Done"), slurm_id(&status)), "{ended}");
    assert_eq!(ended["retry_count"], 0, "Slurm's own requeues are not counted: {ended}");
}

#[test]
fn the_message_of_a_requeued_and_held_job_says_so_until_its_release() {
    let service = Service::start();
    let (id, status) = running(&service, &held("true"));
    service.sandbox.admin(&["scontrol", "requeuehold", &slurm_id(&status)]);
    let held = service.wait(&id, "held", |s| s["message"].as_str().is_some_and(|m| m.starts_with("Held")));
    assert_eq!(held["status"], "Pending", "{held}");
    service.let_go(&id);
    service.sandbox.admin(&["scontrol", "release", &slurm_id(&status)]);
    assert_eq!(service.wait_ended(&id)["status"], "Done");
}

/// As Slurm does with a job that it could not launch. Only the reason differs: Slurm 22.05 drops it within seconds.
#[test]
fn a_job_that_slurm_requeues_at_its_start_and_holds_is_submitted_again() {
    let service = Service::start_with(&[("TAO_SLURM_RETRY_WAIT", "1s")]);
    // While one runs, the other is pending, so that its start is not missed on a slow machine.
    let mut job = held("true");
    job["resources"] = json!({"num_gpus": 8, "num_nodes": 4, "cpus_per_task": 64, "time_hours": 0.1});
    let first = service.submit(&job);
    let id = service.submit(&job);
    let name = slurm_id(&service.wait(&id, "in the queue", |s| s["pending_reason"].is_string()));
    service.let_go(&first);
    let state = || service.sandbox.admin(&["squeue", "-h", "-j", &name, "-o", "%T"]);
    until("its start", Duration::from_mins(1), || state().trim() == "RUNNING");
    service.sandbox.admin(&["scontrol", "requeuehold", &name]);
    service.let_go(&id);
    // After a release and another hold it has no other reason to be pending, and it has not started in between.
    let job = format!("jobid={name}");
    service.sandbox.admin(&["scontrol", "update", &job, "starttime=now+1hour"]);
    service.sandbox.admin(&["scontrol", "release", &name]);
    service.sandbox.admin(&["scontrol", "hold", &name]);
    // A run whose launch failed took no time. This one took as long as a busy machine needed to requeue it.
    let run = format!("sandbox_job_table where id_job = {name} and time_end > 0");
    let shorten = run.replace(" where", " set time_end = time_start where");
    let sql = format!("update {shorten}; select count(*) from {run}");
    let socket = "--socket=/run/tao-slurm-sandbox/root/run/mysql/socket";
    until("accounting to know the run", Duration::from_secs(30), || {
        service.sandbox.admin(&["mariadb", "--no-defaults", socket, "-N", "-e", &sql, "slurm_acct"]).trim()
            == "1"
    });
    let ended = service.wait_ended(&id);
    assert_eq!((&ended["status"], &ended["retry_count"]), (&json!("Done"), &json!(1)), "{ended}");
    assert_ne!(slurm_id(&ended), name);
    assert_eq!(service.wait_ended(&first)["status"], "Done");
    // Whoever releases it would start the job a second time, so the service cancels it.
    let queue = || service.sandbox.login("squeue --me -h -o %i");
    until("the cancellation of the held job", Duration::from_mins(2), || {
        !queue().lines().any(|one| one == name)
    });
}

#[test]
fn a_job_in_special_exit_is_held_and_has_not_ended() {
    let service = Service::start();
    let (id, status) = running(&service, &held("true"));
    service.sandbox.admin(&["scontrol", "requeuehold", "State=SpecialExit", &slurm_id(&status)]);
    let held = service.wait(&id, "held", |s| s["slurm_state"] == "SPECIAL_EXIT");
    assert_eq!(held["status"], "Pending", "{held}");
    service.let_go(&id);
    service.sandbox.admin(&["scontrol", "release", &slurm_id(&status)]);
    assert_eq!(service.wait_ended(&id)["status"], "Done");
}

#[test]
fn a_preempted_job_with_requeue_stays_pending_and_ends_done() {
    let service = Service::start();
    let mut job = held("true");
    job["backend_details"] = json!({"backend_type": "slurm", "partition": "scavenge"});
    job["resources"] = json!({"num_gpus": 8, "cpus_per_task": 64, "num_nodes": 4, "time_hours": 0.5});
    let (id, _) = running(&service, &job);
    let mut other = held("true");
    other["backend_details"] = json!({"backend_type": "slurm", "partition": "polar"});
    let winner = service.submit(&other);
    let back = service.wait(&id, "preempted", |s| s["status"] == "Pending");
    assert_eq!(back["retry_count"], 0, "{back}");
    service.let_go(&id);
    service.let_go(&winner);
    assert_eq!(service.wait_ended(&winner)["status"], "Done");
    let ended = service.wait_ended(&id);
    assert_eq!(ended["status"], "Done", "{ended}");
}

#[test]
fn a_preempted_job_without_requeue_is_canceled_with_the_reason() {
    let service = Service::start();
    let mut job = command("exec sleep 600");
    job["use_requeue"] = false.into();
    job["backend_details"] = json!({"backend_type": "slurm", "partition": "scavenge"});
    job["resources"] = json!({"num_gpus": 8, "cpus_per_task": 64, "num_nodes": 4, "time_hours": 0.5});
    let (id, _) = running(&service, &job);
    let mut other = command("sleep 1");
    other["backend_details"] = json!({"backend_type": "slurm", "partition": "polar"});
    service.submit(&other);
    let ended = service.wait_ended(&id);
    assert_eq!(
        (&ended["status"], &ended["slurm_state"]),
        (&json!("Canceled"), &json!("PREEMPTED")),
        "{ended}"
    );
    assert!(ended["message"].as_str().unwrap().contains("higher priority"), "{ended}");
}

#[test]
fn messages_of_held_jobs_and_of_jobs_that_can_never_start_say_so() {
    let service = Service::start();
    let failed = service.submit(&command("exit 3"));
    let failed = slurm_id(&service.wait_ended(&failed));
    // All nodes, so that it waits for the job that holds them.
    let (holder, _) = running(&service, &command("exec sleep 600"));
    let mut job = command("true");
    job["resources"] = json!({"num_gpus": 8, "num_nodes": 4, "cpus_per_task": 64, "time_hours": 0.1});
    let id = service.submit(&job);
    let waiting = service.wait(&id, "in the queue", |s| s["pending_reason"].is_string());
    let name = slurm_id(&waiting);
    service.sandbox.admin(&["scontrol", "hold", &name]);
    let held = service.wait(&id, "held", |s| s["message"].as_str().is_some_and(|m| m.starts_with("Held")));
    assert_eq!(held["pending_reason"], "JobHeldAdmin", "{held}");
    service.sandbox.admin(&["scontrol", "release", &name]);

    let update = format!("dependency=afterok:{failed}");
    service.sandbox.admin(&["scontrol", "update", &format!("jobid={name}"), &update]);
    let never = service.wait(&id, "never", |s| s["pending_reason"] == "DependencyNeverSatisfied");
    assert!(never["message"].as_str().unwrap().contains("cannot start; cancel it"), "{never}");
    for job in [&id, &holder] {
        service.post(&format!("/jobs/{job}/cancel"), "");
    }
    assert_eq!(service.wait_ended(&id)["status"], "Canceled");
}
