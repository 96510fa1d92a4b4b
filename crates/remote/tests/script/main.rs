//! Runs rendered batch scripts under a real bash, with fakes of Slurm's programs that run what they are given.

#![expect(clippy::unwrap_used, reason = "in a test a failing unwrap is a failing test")]

mod arrays;
mod chain;
mod components;
mod ended_well;
mod environment;
mod given_anew;
mod hostile;
mod launchers;
mod limits;
mod little_room;
mod node;
mod node_failure;
mod self_cancel;
mod services;
mod setup;
mod signals;
mod started_again;
mod usage;

use std::{collections::BTreeMap, fs, os::unix::fs::MetadataExt};

use remote::{BatchScript, Component, Container, Place};

use crate::node::{Node, component, on_nodes, stderr};

#[test]
fn the_exit_code_of_the_command_is_the_scripts_own() {
    for code in [0, 3, 255] {
        let node = Node::new();
        let output = node.run(&node.script(&["bash", "-c", &format!("exit {code}")]), 42, 0);
        assert_eq!(output.status.code(), Some(code), "{}", stderr(&output));
        assert_eq!(node.words("state/exit")[..3], ["42", "0", &code.to_string()]);
    }
}

#[test]
fn the_marks_say_who_when_and_where() {
    let node = Node::new();
    let output = node.run(&node.script(&["true"]), 42, 2);
    assert_eq!(stderr(&output), "");
    let started = node.words("state/started");
    assert_eq!((started[0].as_str(), started[1].as_str(), started[3].as_str()), ("42", "2", "node01"));
    assert!(started[2].parse::<i64>().unwrap() > 1_700_000_000);
    assert!(node.words("state/exit")[3].parse::<i64>().unwrap() > 1_700_000_000);
    assert_eq!(fs::read_link(node.file("state/run")).unwrap().to_str(), Some("42"));
    let left: Vec<_> = fs::read_dir(node.file("state")).unwrap().collect();
    assert_eq!(left.len(), 8, "{left:?}");
}

#[test]
fn the_logs_are_where_people_look_for_them() {
    let node = Node::new();
    node.run(&node.script(&["true"]), 42, 0);
    for stream in ["main.out", "main.err"] {
        let (there, here) =
            (node.file(&format!("state/{stream}")), node.file(&format!("logs/job-1-42/{stream}")));
        assert_eq!(fs::metadata(there).unwrap().ino(), fs::metadata(here).unwrap().ino());
    }
}

#[test]
fn hostile_words_arrive_as_they_are() {
    let node = Node::new();
    let hostile =
        ["a'b\"c", "$(touch pwned)", "`id`", "two\nlines", "", "--", "\\", "*", "é\u{1b}", "#!", " "];
    let argv: Vec<&str> = ["printf", "%s\\0"].into_iter().chain(hostile).collect();
    let output = node.run(&node.script(&argv), 42, 0);
    let arrived = String::from_utf8(output.stdout).unwrap();
    assert_eq!(arrived.split('\0').collect::<Vec<_>>(), [&hostile[..], &[""]].concat());
}

#[test]
fn the_command_reads_nothing_from_the_script() {
    let node = Node::new();
    assert_eq!(node.run(&node.script(&["cat"]), 42, 0).stdout, b"");
}

#[test]
fn a_signal_ends_the_script_with_a_code_of_its_own() {
    let node = Node::new();
    // The command plays Slurm: it signals the batch script, and ends well.
    let script = BatchScript { soft_timeout: None, ..node.script(&["bash", "-c", "kill -TERM $BATCH"]) };
    assert_eq!(node.run(&script, 42, 0).status.code(), Some(143));
    assert_eq!(node.words("state/exit")[2], "143");
}

#[test]
fn several_nodes_know_each_other() {
    let node = Node::new();
    let show = "echo $WORLD_SIZE $NUM_GPU_PER_NODE $MASTER_ADDR $MASTER_PORT $NODE_RANK $1";
    let mut script = on_nodes(node.script(&["bash", "-c", show, "x", "a b"]), 2);
    script.directives.gpus_per_node = 8;
    let output = node.run(&script, 42, 0);
    assert_eq!(String::from_utf8_lossy(&output.stdout), "2 8 node03 29500 1 a b\n", "{}", stderr(&output));
}

#[test]
fn a_container_is_described_to_srun() {
    let node = Node::new();
    let container = Container {
        image: "/lustre/a b.sqsh".to_owned(),
        mounts: vec!["/lustre".to_owned(), "/d x:/d:ro".to_owned()],
        hook_env: BTreeMap::new(),
        home: None,
    };
    let inside = Component { place: Place::Pyxis(container), ..component(&["true"]) };
    let output = node.run(&BatchScript { components: vec![inside], ..node.script(&[]) }, 42, 0);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let args = node.read("srun.args");
    let args: Vec<&str> = args.split('\0').collect();
    assert_eq!(
        args[..7],
        [
            "--export=ALL",
            "--kill-on-bad-exit=1",
            "--container-image=/lustre/a b.sqsh",
            "--container-mounts=/lustre,/d x:/d:ro",
            "--container-env=SLURM_PROCID,SLURM_NODEID,SLURMD_NODENAME",
            "--",
            "bash",
        ]
    );
    assert_eq!(args[args.len() - 3..], ["--exec", "true", ""]);
}
