//! The batch script on a real Slurm: several nodes, several roles, limits, warning signals, and a job that cancels itself.

use std::collections::BTreeSet;

use serde_json::{Value, json};
use test_case::test_case;

use crate::{
    ending::{command, held, training},
    images::Site,
    options::service_with,
    service::Service,
};

const IMAGE: &str = "/lustre/images/tao-toolkit.sqsh";

fn log(service: &Service, id: &str, stream: &str) -> String {
    service.get(&format!("/jobs/{id}/logs?stream={stream}&tail=500")).text
}

/// The log of a role's first task, as a file on the cluster.
fn role_log(service: &Service, id: &str, file: &str) -> String {
    let base = service.sandbox.var("SLURM_BASE_RESULTS_DIR");
    service.sandbox.login(&format!("cat {base}/slurm-logs/tao-job-{id}-*/{file}"))
}

/// A training with two nodes for the policy and one for the rollout; `knobs` make it fail.
pub(crate) fn cosmos(knobs: &Value) -> Value {
    json!({
        "image": IMAGE,
        "network_arch": "cosmos-rl",
        "action": "train",
        "specs": {
            "policy": {"parallelism": {"tp_size": 8, "dp_shard_size": 2}},
            "rollout": {"parallelism": {"tp_size": 4, "n_init_replicas": 2}},
            "train": {"num_epochs": 2},
            "sandbox": knobs,
        },
        "resources": {"cpus_per_task": 1, "time_hours": 0.2},
    })
}

#[test]
fn each_of_three_nodes_has_its_rank_and_the_address_of_the_first() {
    let service = Service::start();
    let mut job = command(
        "echo \"nodes $WORLD_SIZE rank $NODE_RANK gpus $NUM_GPU_PER_NODE at $MASTER_ADDR:$MASTER_PORT\"",
    );
    job["image"] = IMAGE.into();
    job["resources"]["num_nodes"] = 3.into();
    job["resources"]["num_gpus"] = 2.into();
    let id = service.submit(&job);
    assert_eq!(service.wait_ended(&id)["status"], "Done");
    let out = log(&service, &id, "out");
    let lines: Vec<Vec<&str>> = out.lines().map(|line| line.split(' ').collect()).collect();
    assert_eq!(lines.len(), 3, "{out}");
    let one = |at: usize| lines.iter().map(|line| line[at]).collect::<BTreeSet<_>>();
    assert_eq!((one(1), one(5), one(7).len()), (BTreeSet::from(["3"]), BTreeSet::from(["2"]), 1), "{out}");
    assert_eq!(one(3), BTreeSet::from(["0", "1", "2"]), "{out}");
    // The nodes are shared, so the job has found a port of its own.
    let port: u32 = lines[0][7].rsplit(':').next().unwrap().parse().unwrap();
    assert!((20_000..32_000).contains(&port), "{out}");
}

#[test]
fn three_nodes_connect_on_the_requested_port() {
    let service = Service::start();
    let mut job = training(1, &json!({"epoch_seconds": 0.1}));
    job["resources"]["num_nodes"] = 3.into();
    job["resources"]["master_port"] = 31_234.into();
    let id = service.submit(&job);
    assert_eq!(service.wait_ended(&id)["status"], "Done");
    let out = log(&service, &id, "out");
    for rank in 0..3 {
        let met = format!(":31234: rank {rank} is there");
        assert_eq!(out.matches(&met).count(), 1, "{met}: {out}");
    }
}

#[test]
fn each_role_of_cosmos_runs_on_its_nodes_and_logs_apart() {
    let service = Service::start();
    let id = service.submit(&cosmos(&json!({"epoch_seconds": 0.1})));
    let ended = service.wait_ended(&id);
    assert_eq!(ended["status"], "Done", "{ended}\n{}", log(&service, &id, "err"));
    let nodes: Vec<&str> = ended["nodes"].as_array().unwrap().iter().filter_map(Value::as_str).collect();
    let [first, second, third] = nodes[..] else { panic!("{ended}") };
    let place = |role: &str, node: &str| {
        format!("role {role} of {first}:8082 on {node}: policy on {first} {second}, rollout on {third}")
    };
    let seen = [("controller", 0, first), ("policy", 0, first), ("policy", 1, second), ("rollout", 0, third)];
    for (role, task, node) in seen {
        let out = role_log(&service, &id, &format!("{role}/{task}.out"));
        assert!(out.contains(&place(role, node)), "{role} {task}: {out}");
    }
    assert!(role_log(&service, &id, "policy/0.err").contains("stand-in"));
}

#[test]
fn a_role_that_fails_ends_the_job_with_its_code() {
    let service = Service::start();
    let id = service.submit(&cosmos(&json!({"epoch_seconds": 0.1, "fail": "exit", "exit_code": 7})));
    let ended = service.wait_ended(&id);
    assert_eq!((&ended["status"], &ended["slurm_state"]), (&json!("Error"), &json!("FAILED")), "{ended}");
    assert!(ended["message"].as_str().unwrap().contains("The step policy has ended with code 7"), "{ended}");
    assert!(log(&service, &id, "err").contains("the step policy has ended with code 7"));
}

#[test]
fn a_shape_that_no_node_can_provide_is_rejected() {
    let service = Service::start();
    let mut job = cosmos(&json!({}));
    job["specs"]["policy"]["parallelism"] = json!({"tp_size": 13});
    let answer = service.post("/jobs", &job.to_string());
    assert_eq!(answer.status, 422, "{}", answer.text);
    assert!(answer.text.contains("/specs/policy/parallelism"), "{}", answer.text);
}

#[test]
fn a_job_requeues_itself_at_its_own_limit_up_to_the_maximum() {
    let service = service_with("max_requeues = 1");
    let mut job = command("trap 'echo saved; exit 0' TERM; echo begun; while :; do sleep 0.2 || :; done");
    job["resources"]["timeout_hours"] = 0.002.into();
    let id = service.submit(&job);
    let ended = service.wait_ended(&id);
    assert_eq!((&ended["status"], &ended["slurm_state"]), (&json!("Error"), &json!("FAILED")), "{ended}");
    assert!(ended["message"].as_str().unwrap().contains("reached its own time limit"), "{ended}");
    let err = log(&service, &id, "err");
    assert_eq!(err.matches("goes back into the queue, for time 1 of at most 1").count(), 1, "{err}");
    assert!(err.contains("has requeued itself 1 times, which is the most it may"), "{err}");
    let out = log(&service, &id, "out");
    assert_eq!((out.matches("begun").count(), out.matches("saved").count()), (2, 2), "{out}");
}

#[test]
fn a_job_that_may_not_requeue_ends_at_its_own_limit() {
    let service = Service::start();
    let mut job = command("exec sleep 600");
    job["resources"]["timeout_hours"] = 0.002.into();
    job["use_requeue"] = false.into();
    let id = service.submit(&job);
    let running = service.wait(&id, "running", |s| s["status"] == "Running");
    let slurm_id = running["slurm_job_id"].as_str().unwrap();
    let shown = service.sandbox.login(&format!("scontrol show job {slurm_id}"));
    assert!(shown.contains("Requeue=0"), "{shown}");
    let ended = service.wait_ended(&id);
    assert!(ended["message"].as_str().unwrap().contains("reached its own time limit"), "{ended}");
    assert_eq!(service.get(&format!("/jobs/{id}")).json()["attempt_details"]["exit_code"], 124);
}

#[test]
fn a_program_receives_the_warning_signal_before_its_time_limit() {
    let service = service_with("warning_seconds = 600");
    // A warning must not come before half of the limit, so it comes then.
    let text = "trap 'echo warned; exit 9' USR1; while :; do sleep 0.2 || :; done";
    for image in [None, Some(IMAGE)] {
        let mut job = command(text);
        job["resources"]["timeout_hours"] = 0.003.into();
        if let Some(image) = image {
            job["image"] = image.into();
        }
        let id = service.submit(&job);
        let ended = service.wait_ended(&id);
        assert!(ended["message"].as_str().unwrap().contains("exited with code 9"), "{image:?}: {ended}");
        assert!(log(&service, &id, "out").contains("warned"));
    }
}

/// Waits like [`held`], and handles the warning.
fn with_trap() -> Value {
    let go = r#""$TAO_API_RESULTS_DIR/$TAO_API_JOB_ID/go""#;
    command(&format!(
        "trap 'echo warned' USR1; (trap '' USR1; until [ -e {go} ]; do sleep 0.2; done); echo after"
    ))
}

#[test_case(&training(40, &json!({"epoch_seconds": 0.4})) ; "a training that knows nothing of it")]
#[test_case(&held("echo after") ; "a command that knows nothing of it")]
#[test_case(&with_trap() ; "a command that waits for it")]
fn slurms_warning_signal_reaches_programs_that_handle_it_and_ends_no_other(job: &Value) {
    let service = Service::start();
    let id = service.submit(job);
    let running = service.wait(&id, "running", |s| s["status"] == "Running");
    let slurm_id = running["slurm_job_id"].as_str().unwrap();
    let mark = format!("{}/state/{id}/1/warned", service.sandbox.var("SLURM_BASE_RESULTS_DIR"));
    // The program must have started. `--signal=B:` sends the same signal to the same process.
    let text = format!(
        "for i in $(seq 50); do squeue -h -s -j {slurm_id} -o %i | grep -q '[.]0$' && break; sleep 0.1; done
         scancel --batch --signal=USR1 {slurm_id}
         for i in $(seq 50); do [ -e {mark} ] && break; sleep 0.1; done; cat {mark}"
    );
    let warned = service.sandbox.login(&text);
    assert!(warned.starts_with(&format!("{slurm_id} 0 ")), "{warned}");
    service.let_go(&id);
    let ended = service.wait_ended(&id);
    assert_eq!(ended["status"], "Done", "{ended}");
    let out = log(&service, &id, "out");
    assert_eq!(
        out.contains("warned"),
        job["command"].as_str().is_some_and(|text| text.contains("trap")),
        "{out}"
    );
}

/// The import of the image waits until the warning has come.
#[test_case(1 ; "on one node")]
#[test_case(2 ; "on two nodes")]
fn a_warning_during_the_setup_of_a_container_waits_for_the_program(nodes: u32) {
    let mut site = Site::new();
    let name = site.name("slow");
    let image = site.push_held(&name);
    let mut job = command("trap 'echo warned; exit 9' USR1; echo begun; while :; do sleep 0.2 || :; done");
    job["image"] = image.into();
    job["container"] = json!({"use_sqsh": false});
    job["retry"] = json!({"max_retries": 0});
    job["resources"]["num_nodes"] = nodes.into();
    let service = &site.service;
    let id = service.submit(&job);
    let running = service.wait(&id, "running", |s| s["status"] == "Running");
    let slurm_id = running["slurm_job_id"].as_str().unwrap();
    let state = format!("{}/state/{id}/1", service.sandbox.var("SLURM_BASE_RESULTS_DIR"));
    // Step 0 is there, so its container is set up.
    let warned = service.sandbox.login(&format!(
        "until squeue -h -s -j {slurm_id} -o %i | grep -q '[.]0$'; do sleep 0.1; done
         scancel --batch --signal=USR1 {slurm_id}
         until [ -e {state}/warned ]; do sleep 0.1; done; ls {state}"
    ));
    assert!(!warned.contains("begun"), "its program has begun: {warned}");
    site.release();
    let ended = service.wait_ended(&id);
    assert!(ended["message"].as_str().unwrap().contains("exited with code 9"), "{ended}");
    let out = log(service, &id, "out");
    let count = usize::try_from(nodes).unwrap();
    assert_eq!((out.matches("begun").count(), out.matches("warned").count()), (count, count), "{out}");
}

#[test]
fn a_job_that_cancels_itself_has_failed() {
    let service = Service::start();
    let id = service.submit(&command("echo going; scancel \"$SLURM_JOB_ID\"; sleep 600"));
    let ended = service.wait_ended(&id);
    assert_eq!((&ended["status"], &ended["slurm_state"]), (&json!("Error"), &json!("CANCELLED")), "{ended}");
    assert!(ended["message"].as_str().unwrap().contains("canceled itself"), "{ended}");
}
