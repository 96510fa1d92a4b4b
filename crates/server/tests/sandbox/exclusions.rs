//! Excluded nodes of jobs that have no other nodes.

use std::time::Duration;

use serde_json::{Value, json};

use crate::{
    cluster::Sandbox,
    ending::{command, held},
    service::{Service, until},
    states::{Downed, running, slurm_id, whole_node},
};

const ALL: &str = "nodes=node01,node02,node03,node04";

fn in_partition(mut job: Value, name: &str) -> Value {
    job["backend_details"] = json!({"backend_type": "slurm", "partition": name});
    job
}

fn excluded(service: &Service, status: &Value) -> String {
    let shown = service.sandbox.login(&format!("scontrol -o show job {}", slurm_id(status)));
    shown.split(' ').find_map(|field| field.strip_prefix("ExcNodeList=")).unwrap().to_owned()
}

fn says(text: &'static str) -> impl Fn(&Value) -> bool {
    move |status| status["message"].as_str().is_some_and(|message| message.contains(text))
}

#[test]
fn excluded_nodes_are_relaxed_for_a_job_without_other_nodes() {
    let service = Service::start();
    crate::clusters::learnt(&service);
    let job = in_partition(whole_node(held("true")), "grizzly");
    let (id, status) = running(&service, &job);
    let only = status["nodes"][0].as_str().unwrap().to_owned();
    // According to the known partition there are three other nodes.
    let change = format!("nodes={only}");
    let changed = service.sandbox.change_partition("grizzly", &change, ALL);
    let down = Downed::node(&service, &only);
    let back = service.wait(&id, "the exclusion", says("excluding"));
    assert_eq!(excluded(&service, &back), only);
    drop(down);
    let lifted = service.wait(&id, "the relief", says("lifted the exclusion (BadConstraints)"));
    assert!(lifted["message"].as_str().unwrap().contains(&only), "{lifted}");
    service.let_go(&id);
    let ended = service.wait_ended(&id);
    assert_eq!((&ended["status"], slurm_id(&ended)), (&json!("Done"), slurm_id(&status)), "{ended}");
    assert_eq!(ended["nodes"], json!([only]), "{ended}");
    drop(changed);
}

#[test]
fn a_task_of_an_array_without_other_nodes_may_use_the_one_that_failed_it() {
    let service = Service::start_with(&[("TAO_SLURM_RETRY_WAIT", "1s")]);
    let text = r#"
        mkdir -p "$TAO_API_RESULTS_DIR"; cd "$TAO_API_RESULTS_DIR"
        if [ "$TAO_TASK" = 1 ] && mkdir first; then
            until [ -e go ]; do sleep 0.2; done
            echo 'NVRM: Xid (PCI:0000:3b:00): 79, GPU has fallen off the bus.' >&2
            exit 1
        fi
    "#;
    let mut job = in_partition(command(text), "grizzly");
    job["array"] = json!({"indices": "0-1"});
    let id = service.submit(&job);
    service.wait(&id, "task 0 to end", |s| s["tasks"]["done"] == 1 && s["tasks"]["running"] == 1);
    let task = || service.get(&format!("/jobs/{id}/tasks/1")).json();
    let node = task()["nodes"][0].as_str().unwrap().to_owned();
    let others = ["node01", "node02", "node03", "node04"].into_iter().filter(|name| *name != node);
    let down: Vec<Downed<'_>> = others.map(|name| Downed::drained(&service, name)).collect();
    service.sandbox.login(&format!("touch /lustre/fsw/portfolios/edgeai/users/tao/results/{id}/1/go"));
    let excluded = || service.sandbox.login("squeue --me -h -t pending -o '%j %x %r'");
    let row = format!("tao-job-{id}-r2 {node} ReqNodeNotAvail");
    until("the task to wait for another node", Duration::from_mins(2), || excluded().starts_with(&row));
    let ended = service.wait_ended(&id);
    assert_eq!(
        (&ended["status"], &ended["message"]),
        (&json!("Done"), &json!("2 of 2 tasks done.")),
        "{ended}"
    );
    let task = task();
    assert_eq!((&task["attempt"], &task["nodes"]), (&json!(2), &json!([node])), "{task}");
    drop(down);
}

#[test]
fn the_only_node_of_a_partition_is_not_excluded() {
    let sandbox = Sandbox::find();
    let changed = sandbox.change_partition("grizzly", "nodes=node03", ALL);
    let service = Service::start();
    crate::clusters::learnt(&service);
    let (id, status) = running(&service, &in_partition(held("true"), "grizzly"));
    let down = Downed::node(&service, "node03");
    let back = service.wait(&id, "the reason", says("it needs all nodes"));
    assert!(back["message"].as_str().unwrap().contains("it may get node03 again"), "{back}");
    assert_eq!(excluded(&service, &back), "(null)");
    drop(down);
    service.let_go(&id);
    let ended = service.wait_ended(&id);
    assert_eq!((&ended["status"], slurm_id(&ended)), (&json!("Done"), slurm_id(&status)), "{ended}");
    drop(changed);
}

#[test]
fn a_job_in_a_hidden_partition_is_observed_and_canceled() {
    let service = Service::start();
    let hidden = service.sandbox.change_partition("forfeit", "hidden=yes", "hidden=no");
    let (id, _) = running(&service, &in_partition(command("exec sleep 600"), "forfeit"));
    service.post(&format!("/jobs/{id}/cancel"), "");
    let ended = service.wait_ended(&id);
    assert_eq!(
        (&ended["status"], &ended["slurm_state"]),
        (&json!("Canceled"), &json!("CANCELLED")),
        "{ended}"
    );
    drop(hidden);
}
