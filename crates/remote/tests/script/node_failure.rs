//! srun returns 0 when the node of its step fails, and only its log tells.

use std::{fs, os::unix::fs::PermissionsExt};

use crate::node::Node;

const FAILURE: &str = "50 %srun: error: Node failure on node02";

/// What the script returns whose program says this on the log and returns `code`, and whether it leaves the mark of its end.
fn says_of_its_node(node: &Node, text: &str, code: u8, restart: u32) -> (Option<i32>, bool) {
    let says = format!("printf '%s\\n' {text:?} >>{}; exit {code}", node.path("state/main.err"));
    let output = node.run(&node.script(&["bash", "-c", &says]), 42, restart);
    (output.status.code(), node.has("state/exit"))
}

#[test]
fn a_run_whose_node_has_failed_has_not_ended_well() {
    let node = Node::new();
    assert_eq!(says_of_its_node(&node, FAILURE, 0, 0), (Some(118), false));
    assert_eq!(says_of_its_node(&node, "fine", 0, 1), (Some(0), true), "that was the run before");
    let node = Node::new();
    assert_eq!(says_of_its_node(&node, FAILURE, 9, 0), (Some(9), true), "its own code says more");
}

/// Of Slurm 22.05, when the log of a task cannot be opened on its node.
const NOT_STARTED: &str = "srun: error: task 0 launch failed: Slurmd could not connect IO";

#[test]
fn a_run_with_a_task_that_was_not_started_has_not_ended_well() {
    assert_eq!(says_of_its_node(&Node::new(), NOT_STARTED, 0, 0), (Some(118), false));
}

/// Slurm's daemons write into the same file, at the same moment.
#[test]
fn what_is_said_while_the_log_is_read_hides_no_failure() {
    let node = Node::new();
    let log = node.path("state/main.err");
    let more = format!("{:200}", "slurmstepd: error: *** JOB 42 ON node02 CANCELLED DUE TO NODE FAILURE ***");
    let stat = format!(
        "#!/bin/bash\nPATH=/usr/bin:/bin stat \"$@\"\nif [ -s {log} ]; then echo '{more}' >>{log}; fi\n"
    );
    fs::write(node.file("bin/stat"), stat).unwrap();
    fs::set_permissions(node.file("bin/stat"), fs::Permissions::from_mode(0o755)).unwrap();
    assert_eq!(says_of_its_node(&node, FAILURE, 0, 0), (Some(118), false));
}

#[test]
fn a_failure_is_found_below_a_long_log() {
    let node = Node::new();
    let log = node.path("state/main.err");
    let says = format!("head -c 2M /dev/zero >>{log}; echo '{FAILURE}' >>{log}");
    assert_eq!(node.run(&node.script(&["bash", "-c", &says]), 42, 0).status.code(), Some(118));
}
