//! Why jobs are pending, on a real Slurm, and how the service explains it.

use std::time::Duration;

use serde_json::{Value, json};

use crate::{
    clusters::learnt,
    ending::command,
    service::{Service, until},
    states::{running, slurm_id},
};

fn all_nodes(hours: f64) -> Value {
    let mut job = command("exec sleep 600");
    job["resources"] = json!({"num_gpus": 8, "num_nodes": 4, "cpus_per_task": 64, "time_hours": hours, "timeout_hours": hours / 2.0});
    job["backend_details"] = json!({"backend_type": "slurm", "partition": "polar"});
    job
}

/// The explanation, once it is about this reason.
fn explained(service: &Service, id: &str, reason: &str) -> Value {
    let has_reason =
        |s: &Value| s["pending"]["reason"].as_str().is_some_and(|shown| shown.starts_with(reason));
    let status = service.wait(id, reason, has_reason);
    let meaning = status["pending"]["meaning"].as_str().unwrap();
    assert!(status["message"].as_str().unwrap().contains(meaning), "{status}");
    status["pending"].clone()
}

fn held_by(pending: &Value) -> (&str, Option<&str>, bool) {
    let holder = pending["held_by"].as_str().unwrap_or_else(|| panic!("{pending}"));
    (holder, pending["limit"].as_str(), pending["needs_action"].as_bool().unwrap())
}

#[test]
fn a_queued_job_shows_its_reason_and_its_estimated_start() {
    let service = Service::start();
    learnt(&service);
    let login = |text: &str| service.sandbox.login(text);
    let (holder, _) = running(&service, &all_nodes(0.5));

    // The next job in the queue, and one behind it.
    let next = service.submit(&all_nodes(0.4));
    let pending = explained(&service, &next, "Resources");
    assert_eq!(held_by(&pending), ("resources", None, false));
    let starts = |s: &Value| s["pending"]["estimated_start_on"].is_string();
    let status = service.wait(&next, "an estimate", starts);
    let expected = login(&format!("TZ=UTC squeue -h -o %S -j {}", slurm_id(&status)));
    // Slurm's estimate may have moved by some seconds since the poll.
    let minute = |text: &str| text.parse::<chrono::NaiveDateTime>().unwrap();
    let shown = status["pending"]["estimated_start_on"].as_str().unwrap().trim_end_matches('Z');
    assert!((minute(shown) - minute(&expected)).num_seconds().abs() <= 60, "{shown} for {expected}");
    let waited = status["queue_wait_seconds"].as_i64().unwrap();
    service.wait(&next, "a longer wait", |s| s["queue_wait_seconds"].as_i64().unwrap() > waited);

    let mut small = command("true");
    small["backend_details"] = json!({"backend_type": "slurm", "partition": "polar"});
    small["resources"] = json!({"num_gpus": 1, "cpus_per_task": 1, "time_hours": 3.0});
    let id = service.submit(&small);
    let pending = explained(&service, &id, "Priority");
    assert_eq!(held_by(&pending), ("priority", None, false));
    let job = slurm_id(&service.status(&id));

    // Slurm blames the nodes of a partition if they are all held for the next job of another one.
    small["backend_details"]["partition"] = "polar4".into();
    let blamed = service.submit(&small);
    let pending = explained(&service, &blamed, "Nodes required for job are DOWN");
    assert_eq!(held_by(&pending), ("resources", None, false), "all nodes work: {pending}");
    service.post(&format!("/jobs/{blamed}/cancel"), "");

    // Held, waiting for another job, and waiting for a time.
    login(&format!("scontrol hold {job}"));
    let pending = explained(&service, &id, "JobHeldUser");
    assert_eq!(held_by(&pending), ("hold", None, true));
    assert_eq!(pending["estimated_start_on"], Value::Null);
    assert!(pending["advice"].as_str().unwrap().contains("scontrol release"), "{pending}");
    login(&format!("scontrol release {job}"));
    let of = slurm_id(&service.status(&holder));
    login(&format!("scontrol update jobid={job} dependency=afterok:{of}"));
    assert_eq!(held_by(&explained(&service, &id, "Dependency")), ("dependency", None, false));
    login(&format!("scontrol update jobid={job} dependency="));
    login(&format!("scontrol update jobid={job} starttime=now+1hour"));
    let pending = explained(&service, &id, "BeginTime");
    assert_eq!(held_by(&pending), ("time", None, false));
    assert!(pending["estimated_start_on"].is_string(), "{pending}");
    login(&format!("scontrol update jobid={job} starttime=now"));

    // Limits: of the QOS, of the association, of the partition.
    let qos = ["sacctmgr", "-i", "modify", "qos", "normal", "set"];
    let limit = service.sandbox.change(
        &[&qos[..], &["MaxJobsPerUser=1"]].concat(),
        &["sacctmgr", "-i", "modify", "qos", "normal", "set", "MaxJobsPerUser=-1"],
    );
    let pending = explained(&service, &id, "QOSMaxJobsPerUserLimit");
    assert_eq!(held_by(&pending), ("qos", Some("MaxJobsPerUser"), false));
    drop(limit);
    let user = ["sacctmgr", "-i", "modify", "user", "tao", "set"];
    let limit = service.sandbox.change(
        &[&user[..], &["GrpTRES=gres/gpu=2"]].concat(),
        &["sacctmgr", "-i", "modify", "user", "tao", "set", "GrpTRES=gres/gpu=-1"],
    );
    let pending = explained(&service, &id, "AssocGrpGRES");
    assert_eq!(held_by(&pending), ("association", Some("GrpTRES=gres"), false));
    drop(limit);
    let limit = service.sandbox.change_partition("polar", "maxtime=60", "maxtime=04:00:00");
    let pending = explained(&service, &id, "PartitionTimeLimit");
    assert_eq!(held_by(&pending), ("partition", Some("MaxTime"), true));
    drop(limit);

    // A drained node, once no job of higher priority is before it.
    service.post(&format!("/jobs/{next}/cancel"), "");
    service.wait_ended(&next);
    let drained = service.sandbox.change(
        &["scontrol", "update", "nodename=node04", "state=drain", "reason=test"],
        &["scontrol", "update", "nodename=node04", "state=resume"],
    );
    login(&format!("scontrol update jobid={job} reqnodelist=node04"));
    let pending = explained(&service, &id, "ReqNodeNotAvail");
    assert_eq!(held_by(&pending), ("nodes", None, true));
    assert!(pending["advice"].as_str().unwrap().contains("sinfo -R"), "{pending}");
    drop(drained);
    login(&format!("scontrol update jobid={job} reqnodelist="));

    service.post(&format!("/jobs/{holder}/cancel"), "");
    service.wait_ended(&holder);
    let ended = service.wait_ended(&id);
    assert_eq!((&ended["status"], &ended["pending"]), (&json!("Done"), &Value::Null), "{ended}");
    let waited = ended["queue_wait_seconds"].as_i64().unwrap();
    assert!(waited >= 5, "it has waited while all of this went on: {ended}");
    until("the nodes to be free", Duration::from_secs(30), || login("squeue -h --me -t R,CG").is_empty());
}
