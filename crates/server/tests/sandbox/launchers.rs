//! Launchers with real `PyTorch`, MPI, Accelerate, `DeepSpeed` and Ray on several nodes: each works, fails with the code of its second
//! process, and is canceled. Nothing of a job stays on a node.
//!
//! They need the packages of `ci/setup --test` on the nodes. The machines of Slurm 22.05 have those of the host; the root file
//! system of 24.11 has none of them, and no Python.

use std::time::Duration;

use serde_json::{Value, json};
use test_case::test_case;

use crate::{
    environments::processes,
    script::cosmos,
    service::{Service, until},
    states::running,
};

const PROGRAM: &str = include_str!("launchers/job.py");
/// Where the nodes see what `ci/setup --test` has installed.
const TOOLS: &str = "/run/tao-slurm-sandbox/root/launchers/bin";

/// A job of `program` on so many nodes, which works, fails or hangs.
fn job(launcher: &Value, program: &str, nodes: u32, end: &str) -> Value {
    json!({
        "command": format!("exec python3 $TAO_JOB_FILES/job.py {program} {end}"),
        "launcher": launcher,
        "setup": setup(),
        "files": {"job.py": {"text": PROGRAM}},
        "resources": {"num_nodes": nodes, "gpus_per_node": 1, "cpus_per_task": 1, "memory": "16G", "time_hours": 0.5},
    })
}

/// The lines that find the packages.
pub(crate) fn setup() -> [String; 2] {
    // With Python 3.11, PyTorch 1.13 does not take its own defaults of these two options.
    let torch = "export PET_REDIRECTS=9:1 PET_TEE=9:1";
    [format!("export PATH={TOOLS}:$PATH OMP_NUM_THREADS=1"), torch.to_owned()]
}

fn log(service: &Service, id: &str) -> String {
    service.get(&format!("/jobs/{id}/logs?stream=all&tail=500")).text
}

/// No process of the job is left. The nodes share this machine's processes.
pub(crate) fn is_gone(id: &str) {
    let left = || processes(id).into_iter().map(|process| process.command_line).collect::<Vec<_>>();
    until(&format!("the end of {:?}", left()), Duration::from_secs(20), || left().is_empty());
}

/// Whether the machines have the packages.
pub(crate) fn are_installed(service: &Service) -> bool {
    service.sandbox.login("sinfo --version").contains("22.05")
}

fn ended_with(service: &Service, id: &str, status: &str, code: Option<u8>) {
    let ended = service.wait_ended(id);
    let attempts = service.get(&format!("/jobs/{id}/attempts")).json();
    let last = attempts["attempts"].as_array().unwrap().last().unwrap();
    assert_eq!(ended["status"], status, "{ended}\n{}", log(service, id));
    if let Some(code) = code {
        assert_eq!(last["exit_code"], code, "{last}\n{}", log(service, id));
    }
}

fn cancel(service: &Service, id: &str, when: &str) {
    until("the last job to run", Duration::from_mins(1), || log(service, id).contains(when));
    assert_eq!(service.post(&format!("/jobs/{id}/cancel"), "").status, 202);
    ended_with(service, id, "Canceled", None);
}

/// Three jobs at the same time: one works and prints `lines`, one fails with 7, one is canceled.
fn works_fails_and_is_canceled(service: &Service, job: impl Fn(&str) -> Value, lines: &[&str]) {
    let [works, fails, hangs] = ["works", "fails", "hangs"].map(|end| service.submit(&job(end)));
    ended_with(service, &works, "Done", Some(0));
    ended_with(service, &fails, "Error", Some(7));
    cancel(service, &hangs, lines[0]);
    let text = log(service, &works);
    for line in lines {
        assert!(text.contains(line), "{line}: {text}");
    }
    for id in [works, fails, hangs] {
        is_gone(&id);
    }
}

#[test_case(&json!("plain"), &["rank 0 of 1: 0"]; "plain")]
#[test_case(&json!("per_node"), &["rank 0 of 2: 0", "rank 1 of 2: 1"]; "per_node")]
fn without_a_program_of_its_own(launcher: &Value, lines: &[&str]) {
    let service = Service::start();
    if are_installed(&service) {
        works_fails_and_is_canceled(&service, |end| job(launcher, "alone", 2, end), lines);
    }
}

#[test_case(&json!({"kind": "torchrun", "nproc_per_node": 2}), 3, &["rank 0 of 6: 15", "rank 5 of 6: 15"]; "torchrun")]
#[test_case(&json!({"kind": "torchrun", "rendezvous": "static"}), 2, &["rank 0 of 2: 1", "rank 1 of 2: 1"]; "torchrun_static")]
#[test_case(&json!({"kind": "accelerate", "args": ["--multi_gpu", "--tee=9:1"]}), 2, &["rank 0 of 2: 1", "rank 1 of 2: 1"]; "accelerate")]
#[test_case(&json!("deepspeed"), 2, &["rank 0 of 2: 1", "rank 1 of 2: 1"]; "deepspeed")]
fn torch_adds_up_on_all_nodes(launcher: &Value, nodes: u32, lines: &[&str]) {
    let service = Service::start();
    if are_installed(&service) {
        works_fails_and_is_canceled(&service, |end| job(launcher, "torch", nodes, end), lines);
    }
}

#[test]
fn mpi_adds_up_on_two_nodes_of_two_tasks() {
    let service = Service::start();
    if are_installed(&service) {
        let job = |end: &str| {
            let mut job = job(&json!({"kind": "mpi", "plugin": "pmix"}), "mpi", 2, end);
            job["resources"]["tasks_per_node"] = 2.into();
            job
        };
        let lines = ["rank 0 of 4: 6", "rank 1 of 4: 6", "rank 2 of 4: 6", "rank 3 of 4: 6"];
        works_fails_and_is_canceled(&service, job, &lines);
    }
}

/// Nothing of Ray is left in the temporary directory of any node.
fn is_clean(service: &Service) {
    let left = "srun -p polar -N4 sh -c 'ls -d /tmp/tao-ray* /tmp/ray 2>/dev/null || true'";
    assert_eq!(service.sandbox.login(left), "");
}

#[test]
fn two_clusters_of_ray_share_three_nodes() {
    let service = Service::start();
    if !are_installed(&service) {
        return;
    }
    let job = |end: &str| {
        let mut job = job(&json!("ray"), "ray", 3, end);
        job["resources"]["nodelist"] = "node[01-03]".into();
        job
    };
    let [works, fails] = ["works", "fails"].map(|end| service.submit(&job(end)));
    let alone = service.submit(&late());
    ended_with(&service, &works, "Done", Some(0));
    ended_with(&service, &fails, "Error", Some(7));
    ended_with(&service, &alone, "Done", Some(0));
    let text = log(&service, &works);
    assert!(text.contains("rank 1 of 3: 3"), "three nodes, and each has worked: {text}");
    let hangs = service.submit(&job("hangs"));
    cancel(&service, &hangs, "rank 1 of 3: 3");
    for id in [works, fails, alone, hangs] {
        is_gone(&id);
    }
    is_clean(&service);
}

/// Ray, whose agents are ready after a minute, and its processes for work never. The command needs neither.
fn late() -> Value {
    let late = "import time\nprogram = open('/proc/self/cmdline').read()\n\
                if 'agent/main.py' in program or 'dashboard/agent.py' in program: time.sleep(60)\n\
                if 'default_worker.py' in program: time.sleep(600)\n";
    let mut job = job(&json!("ray"), "", 1, "");
    job["command"] = "exec python3 -c 'import ray; ray.init(); assert len(ray.nodes()) == 1'".into();
    job["files"] = json!({"sitecustomize.py": {"text": late}});
    job["setup"].as_array_mut().unwrap().push("export PYTHONPATH=$TAO_JOB_FILES".into());
    job
}

/// Ray, which has to start again on both nodes: on the first when the second has joined it, then on the second when it has joined again.
const STARTS_AGAIN: &str = r#"#!/bin/bash
ray=$(type -aP ray | sed -n 2p)
marks=$TAO_API_RESULTS_DIR/$TAO_API_JOB_ID
wait_for() { until [ -e "$1" ]; do sleep 0.2; done; }
case $* in
  "start --head "*)
    "$ray" "$@" || exit
    if mkdir "$marks/tried"; then
      wait_for "$marks/joined"
      "$ray" stop
      exit 1
    fi
    wait_for "$marks/left"
    ;;
  "start --address "*)
    if [ -e "$marks/left" ]; then exec "$ray" "$@"; fi
    "$ray" "$@" &
    wait_for "$RAY_TMPDIR/ray/session_latest/logs/ray_process_exit.log"
    if [ -e "$marks/joined" ]; then
      "$ray" stop
      kill $!
      touch "$marks/left"
    fi
    touch "$marks/joined"
    wait $!
    ;;
  *) exec "$ray" "$@" ;;
esac
"#;

#[test]
fn symmetric_run_starts_again_returns_the_code_of_the_command_and_is_canceled() {
    let service = Service::start();
    if !are_installed(&service) {
        return;
    }
    let job = |end: &str| {
        let mut job = job(&json!({"kind": "ray", "bootstrap": "symmetric-run"}), "ray", 2, end);
        job["resources"]["exclusive"] = true.into();
        job["resources"]["gpus_per_node"] = 8.into();
        job
    };
    let [hangs, works] = ["hangs", "works"].map(|end| service.submit(&job(end)));
    let mut job = job("fails");
    job["files"]["bin/ray"] = json!({"text": STARTS_AGAIN, "mode": "0755"});
    let [first, second] = setup();
    job["setup"] = json!([first, second, "export PATH=$TAO_JOB_FILES/bin:$PATH"]);
    let fails = service.submit(&job);
    cancel(&service, &hangs, "rank 1 of 2: 2");
    ended_with(&service, &works, "Done", Some(0));
    ended_with(&service, &fails, "Error", Some(7));
    for id in [&works, &fails] {
        let text = log(&service, id);
        assert!(text.contains("rank 1 of 2: 2"), "{text}");
    }
    for id in [hangs, works, fails] {
        is_gone(&id);
    }
    is_clean(&service);
}

#[test]
fn nothing_of_the_roles_of_cosmos_stays() {
    let service = Service::start();
    let knobs = |end: &str| match end {
        "works" => json!({"epoch_seconds": 0.5}),
        "fails" => json!({"epoch_seconds": 0.5, "fail": "exit", "exit_code": 7}),
        _ => json!({"epoch_seconds": 600}),
    };
    let [works, fails] = ["works", "fails"].map(|end| service.submit(&cosmos(&knobs(end))));
    ended_with(&service, &works, "Done", Some(0));
    ended_with(&service, &fails, "Error", Some(7));
    let (hangs, _) = running(&service, &cosmos(&knobs("hangs")));
    assert_eq!(service.post(&format!("/jobs/{hangs}/cancel"), "").status, 202);
    ended_with(&service, &hangs, "Canceled", None);
    for id in [works, fails, hangs] {
        is_gone(&id);
    }
}
