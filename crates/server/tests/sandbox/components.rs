//! Steps, services and launchers on a real Slurm.

use std::collections::BTreeSet;

use serde_json::{Value, json};
use test_case::test_case;

use crate::{ending::command, service::Service};

fn log(service: &Service, id: &str, query: &str) -> String {
    service.get(&format!("/jobs/{id}/logs?tail=500&{query}")).text
}

/// A job of two nodes with a service on the first and two steps on the second.
fn with_service(serve: &str, step: &str) -> Value {
    json!({
        "services": [{"name": "model", "command": serve}],
        "steps": [
            {"name": "score", "command": step},
            {"name": "report", "command": "echo reported"},
        ],
        "resources": {"num_nodes": 2, "gpus_per_node": 0, "cpus_per_task": 1, "time_hours": 0.2},
    })
}

#[test]
fn steps_run_beside_a_service_which_is_ended_last() {
    let service = Service::start();
    let serve =
        "trap 'echo stopped; exit 0' TERM; echo on $SLURMD_NODENAME; while :; do sleep 0.2 || :; done";
    let id = service.submit(&with_service(serve, "echo \"model at $MODEL_HOST, here $SLURMD_NODENAME\""));
    let ended = service.wait_ended(&id);
    assert_eq!(ended["status"], "Done", "{ended}\n{}", log(&service, &id, "stream=err"));
    let nodes: Vec<&str> = ended["nodes"].as_array().unwrap().iter().filter_map(Value::as_str).collect();
    let scored = log(&service, &id, "stream=out&role=score");
    assert!(scored.contains(&format!("model at {}, here {}", nodes[0], nodes[1])), "{scored}");
    assert!(log(&service, &id, "stream=out&role=report").contains("reported"));
    let model = log(&service, &id, "stream=out&role=model");
    assert!(model.contains(&format!("on {}", nodes[0])) && model.contains("stopped"), "{model}");
}

#[test_case("sleep 2; exit 9", "exec sleep 600", 9 ; "a service that ends")]
#[test_case("exec sleep 600", "exit 7", 7 ; "a step that fails")]
fn the_first_end_that_counts_ends_the_job_with_its_code(serve: &str, step: &str, code: u8) {
    let service = Service::start();
    let id = service.submit(&with_service(serve, step));
    let ended = service.wait_ended(&id);
    assert_eq!(ended["status"], "Error", "{ended}");
    assert_eq!(service.get(&format!("/jobs/{id}")).json()["attempt_details"]["exit_code"], code, "{ended}");
}

#[test]
fn slurm_starts_a_process_for_each_task_of_mpi() {
    let service = Service::start();
    let mut job = command("echo \"rank $RANK/$LOCAL_RANK of $WORLD_SIZE\"");
    job["launcher"] = json!({"kind": "mpi", "plugin": "none"});
    job["resources"]["num_nodes"] = 2.into();
    job["resources"]["tasks_per_node"] = 2.into();
    let id = service.submit(&job);
    let ended = service.wait_ended(&id);
    assert_eq!(ended["status"], "Done", "{ended}\n{}", log(&service, &id, "stream=err"));
    let out = log(&service, &id, "stream=out");
    let expected = ["rank 0/0 of 4", "rank 1/1 of 4", "rank 2/0 of 4", "rank 3/1 of 4"];
    assert_eq!(out.lines().collect::<BTreeSet<_>>(), BTreeSet::from(expected), "{out}");
}

#[test]
fn a_plain_command_runs_once_with_its_setup_files_and_directory() {
    let service = Service::start();
    let mut job = command("echo \"$GREETING $(cat \"$TAO_JOB_FILES/a/b\") in $PWD\"");
    job["launcher"] = "plain".into();
    job["resources"]["num_nodes"] = 2.into();
    job["setup"] = json!(["export GREETING=hello"]);
    job["files"] = json!({"a/b": {"text": "world"}});
    job["workdir"] = "/tmp".into();
    let id = service.submit(&job);
    let ended = service.wait_ended(&id);
    assert_eq!(ended["status"], "Done", "{ended}\n{}", log(&service, &id, "stream=err"));
    assert_eq!(log(&service, &id, "stream=out"), "hello world in /tmp\n");
}

#[test]
fn a_setup_that_fails_is_the_reason_of_the_end() {
    let service = Service::start();
    let mut job = command("echo never");
    job["setup"] = json!(["module load nosuch/1.0"]);
    let id = service.submit(&job);
    let ended = service.wait_ended(&id);
    assert!(ended["message"].as_str().unwrap().contains("A line of the job's setup failed"), "{ended}");
}

/// Stands in for torchrun: it prints its words, and runs the command once.
const TORCHRUN: &str = "#!/bin/bash\necho \"launched with $*\"\nuntil [ \"$1\" = --no_python ]; do shift; done\nshift\nexec \"$@\"\n";

#[test]
fn torchrun_is_started_on_each_node_with_where_to_meet() {
    let service = Service::start();
    let mut job = command("echo \"node $NODE_RANK of $NNODES\"");
    job["launcher"] = json!({"kind": "torchrun", "nproc_per_node": 2, "rendezvous": "static"});
    job["resources"]["num_nodes"] = 2.into();
    job["files"] = json!({"torchrun": {"text": TORCHRUN, "mode": "0755"}});
    job["setup"] = json!(["export PATH=$TAO_JOB_FILES:$PATH"]);
    let id = service.submit(&job);
    let ended = service.wait_ended(&id);
    assert_eq!(ended["status"], "Done", "{ended}\n{}", log(&service, &id, "stream=err"));
    let out = log(&service, &id, "stream=out");
    let first = ended["nodes"][0].as_str().unwrap();
    for rank in 0..2 {
        assert!(out.contains(&format!("node {rank} of 2\n")), "{out}");
        let words = format!(
            "launched with --nnodes=2 --nproc_per_node=2 --node_rank={rank} --master_addr={first} --master_port="
        );
        assert!(out.contains(&words), "{words}: {out}");
    }
}

/// Serves its environment's `ROLE` at its port, some seconds after its start.
const SERVE: &str = r#"sleep 3; cd "$(mktemp -d)"; echo "$ROLE" >role; exec python3 -m http.server "$PORT""#;

/// A server on the node itself and another one in the job's image, on two nodes, with other values under the same names.
fn two_servers() -> Value {
    let ask = r#"echo "$ROLE $API_KEY"; python3 -c "import os, urllib.request as u; print(u.urlopen(os.environ['MODEL_URL'] + '/role').read())""#;
    let judge = r#"echo "$ROLE $API_KEY $THERE"; [ ! -e /etc/debian_version ]; touch "$TAO_API_RESULTS_DIR/$TAO_API_JOB_ID/judges"; sleep 600"#;
    json!({
        "image": "/lustre/images/tao-toolkit.sqsh",
        "docker_env_vars": {"ROLE": "all"},
        "services": [
            {
                "name": "model", "command": SERVE, "on_node": true, "ready": {"http": "/role", "body": {"pattern": "^the model$"}},
                "env": {"ROLE": "the model"}, "secret_env": {"API_KEY": "hunter-model"},
            },
            {
                "name": "judge", "command": judge, "node_env": {"THERE": "HOME"},
                "env": {"ROLE": "the judge"}, "secret_env": {"API_KEY": "hunter-judge"},
            },
        ],
        "steps": [{"name": "ask", "command": ask, "on_node": true, "secret_env": {"API_KEY": "hunter-ask"}}],
        "resources": {"num_nodes": 3, "gpus_per_node": 0, "cpus_per_task": 1, "time_hours": 0.2},
    })
}

#[test]
fn steps_begin_when_the_servers_answer_and_each_has_values_of_its_own() {
    let service = Service::start();
    let id = service.submit(&two_servers());
    let queued = service.wait(&id, "in Slurm", |status| status["slurm_job_id"].is_string());
    let slurm_id = queued["slurm_job_id"].as_str().unwrap();
    let shown = service
        .sandbox
        .login(&format!("scontrol show job -d {slurm_id}; squeue -h -j {slurm_id} -O all:9999"));
    let ended = service.wait_ended(&id);
    assert_eq!(ended["status"], "Done", "{ended}\n{}", log(&service, &id, "stream=err"));
    assert_eq!(log(&service, &id, "stream=out&role=ask"), "all hunter-ask\nb'the model\\n'\n");
    assert_eq!(log(&service, &id, "stream=out&role=judge"), "the judge hunter-judge /home/tao\n");
    assert!(log(&service, &id, "stream=err").contains("the service model is ready after "));
    let script = service.get(&format!("/jobs/{id}/script")).text;
    let job = service.get(&format!("/jobs/{id}")).text;
    let base = service.sandbox.var("SLURM_BASE_RESULTS_DIR");
    let left = service.sandbox.login(&format!("ls {base}/env | grep -c {id} || true"));
    assert_eq!(left.trim(), "0", "its files with secrets are removed");
    for (text, what) in [(shown, "Slurm"), (script, "the script"), (job, "the job")] {
        assert!(!text.contains("hunter-"), "a secret is in {what}: {text}");
    }
}

#[test]
fn a_server_that_does_not_answer_in_time_ends_the_job() {
    let service = Service::start();
    let mut job = with_service("echo loading; exec sleep 600", "echo never");
    job["services"][0]["ready"] = json!({"tcp": true, "timeout_minutes": 0.5, "interval_seconds": 1});
    let id = service.submit(&job);
    let ended = service.wait_ended(&id);
    assert_eq!(ended["status"], "Error", "{ended}");
    let message = ended["message"].as_str().unwrap();
    assert!(message.starts_with("The service model is not ready after 30 s (Slurm: FAILED"), "{ended}");
    assert!(message.ends_with("Last lines of model/0.out:\nloading"), "{ended}");
    let attempt = &service.get(&format!("/jobs/{id}")).json()["attempt_details"];
    assert_eq!((&attempt["exit_code"], &attempt["rule"]), (&json!(126), &json!("service-failed")));
}

#[test]
fn the_status_tells_which_service_loads_and_how_far_the_job_has_come() {
    let service = Service::start();
    let enter = "cd $TAO_API_RESULTS_DIR/$TAO_API_JOB_ID";
    let mut job = with_service(
        &format!("{enter}; until [ -e loaded ]; do sleep 0.1; done; echo up; exec sleep 600"),
        &format!("{enter}; echo 50 >progress; until [ -e go ]; do sleep 0.1; done"),
    );
    job["services"][0]["ready"] =
        json!({"log_pattern": "^up$", "timeout_minutes": 60, "interval_seconds": 1});
    job["progress"] = json!({"file": "progress", "total": 200});
    let id = service.submit(&job);
    let is_said = |status: &Value, text: &str| status["message"].as_str().unwrap().contains(text);
    let loading = service.wait(&id, "its service to load", |status| is_said(status, ". model: loading, "));
    assert!(loading["message"].as_str().unwrap().ends_with(" s of 3600."), "{loading}");
    let results = format!("{}/results/{id}", service.sandbox.var("SLURM_BASE_RESULTS_DIR"));
    service.sandbox.login(&format!("touch {results}/loaded"));
    let half = service.wait(&id, "its progress", |status| status["progress"]["done"] == 50.0);
    assert!(half["message"].as_str().unwrap().starts_with("50 of 200 on "), "{half}");
    assert_eq!((&half["progress"]["percent"], &half["progress"]["total"]), (&json!(25), &json!(200.0)));
    service.sandbox.login(&format!("touch {results}/go"));
    assert_eq!(service.wait_ended(&id)["status"], "Done");
}

#[test]
fn a_variable_that_the_node_lacks_ends_the_job_before_its_programs() {
    let service = Service::start();
    let mut job = with_service("exec sleep 600", "echo never");
    job["steps"][0]["node_env"] = json!({"TOKEN": "NOBODY_SETS_THIS"});
    let id = service.submit(&job);
    let ended = service.wait_ended(&id);
    let message = ended["message"].as_str().unwrap();
    assert!(message.contains("the variable NOBODY_SETS_THIS is not set on the node"), "{ended}");
    assert_eq!(service.get(&format!("/jobs/{id}")).json()["attempt_details"]["exit_code"], 112);
}
