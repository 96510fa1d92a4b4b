//! A script that Slurm starts once more, or for another job.

use std::{fs, os::unix::fs::symlink};

use crate::node::{Node, stderr};

#[test]
fn a_second_job_touches_nothing() {
    let node = Node::new();
    node.run(&node.script(&["true"]), 42, 0);
    fs::remove_dir_all(node.file("logs")).unwrap();
    let before = (node.read("state/exit"), node.read("state/started"));
    let output = node.run(&node.script(&["touch", node.path("touched").as_str()]), 43, 0);
    assert_eq!(output.status.code(), Some(120));
    assert_eq!(stderr(&output), "tao-slurm: job 43 stops here: the attempt belongs to job 42\n");
    assert_eq!((node.read("state/exit"), node.read("state/started")), before);
    assert!(!node.file("touched").exists() && !node.file("logs").exists());
}

#[test]
fn a_run_that_has_ended_well_is_not_repeated_and_one_that_has_failed_is() {
    let node = Node::new();
    let says = |code: u8| ["bash".to_owned(), "-c".to_owned(), format!("echo again; exit {code}")];
    let run = |code: u8, restart| {
        let says = says(code);
        node.run(&node.script(&says.each_ref().map(String::as_str)), 42, restart)
    };
    let said = |output: &std::process::Output| (output.status.code(), output.stdout.len() / "again\n".len());
    assert_eq!(said(&run(1, 0)), (Some(1), 1));
    assert_eq!(said(&run(0, 1)), (Some(0), 1), "what has failed is repeated");
    let marks = (node.words("state/exit"), node.words("state/started"));
    let output = run(5, 2);
    assert_eq!(said(&output), (Some(0), 0), "{}", stderr(&output));
    assert_eq!(stderr(&output), "tao-slurm: job 42 stops here: run 1 of it has ended with code 0\n");
    assert_eq!((node.words("state/exit"), node.words("state/started")), marks);
}

#[test]
fn markers_of_many_thousand_tasks_are_cleared_for_the_next_run() {
    let node = Node::new();
    assert_eq!(node.run(&node.script(&["false"]), 42, 0).status.code(), Some(1));
    // Their names together are longer than the arguments of a program may be.
    for task in 0..50_000 {
        fs::write(node.file(&format!("state/begun.main.{task:06}")), "").unwrap();
    }
    let output = node.run(&node.script(&["bash", "-c", "ls $SITE/state | grep -c ^begun"]), 42, 1);
    assert_eq!(String::from_utf8_lossy(&output.stdout), "0\n", "{}", stderr(&output));
}

#[test]
fn a_run_that_slurm_starts_twice_is_carried_out_once_and_ends_as_it_did() {
    let node = Node::new();
    let says = ["bash", "-c", "echo once; exit 7"];
    let first = node.run(&node.script(&says), 42, 3);
    assert_eq!((first.status.code(), first.stdout.as_slice()), (Some(7), &b"once\n"[..]));
    let marked = node.words("state/exit");
    let again = node.run(&node.script(&says), 42, 3);
    assert_eq!((again.status.code(), again.stdout.as_slice()), (Some(7), &b""[..]), "{}", stderr(&again));
    assert_eq!(node.words("state/exit"), marked);
    // Nobody knows how it ended: its node may have been lost, too.
    fs::remove_file(node.path("state/exit").as_str()).unwrap();
    let again = node.run(&node.script(&says), 42, 3);
    assert_eq!((again.status.code(), again.stdout.as_slice()), (Some(123), &b""[..]), "{}", stderr(&again));
    assert_eq!(node.run(&node.script(&says), 42, 4).stdout, b"once\n", "the next run is another");
}

#[test]
fn a_run_that_was_ended_and_is_started_again_does_not_say_that_it_was_ended_by_itself() {
    let node = Node::new();
    let says = ["bash", "-c", "exit 143"];
    assert_eq!(node.run(&node.script(&says), 42, 0).status.code(), Some(143));
    let again = node.run(&node.script(&says), 42, 0);
    assert_eq!(again.status.code(), Some(123), "{}", stderr(&again));
    assert_eq!(node.words("state/exit")[..3], ["42", "0", "143"], "the mark is that of the run");
}

#[test]
fn the_same_job_goes_on_after_a_requeue() {
    let node = Node::new();
    assert_eq!(node.run(&node.script(&["false"]), 42, 0).status.code(), Some(1));
    let seen = format!("ls {}; exit 0", node.path("state"));
    let output = node.run(&node.script(&["bash", "-c", &seen]), 42, 1);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let seen = String::from_utf8(output.stdout).unwrap();
    assert!(!seen.contains("exit"), "the mark of the run before is gone while this one runs: {seen}");
    assert_eq!(node.words("state/exit")[..3], ["42", "1", "0"]);
    assert_eq!(node.words("state/started")[1], "1");
}

#[test]
fn a_job_whose_end_was_told_does_not_run_again() {
    let node = Node::new();
    let touch = node.script(&["touch", node.path("touched").as_str()]);
    assert_eq!(node.run(&node.script(&["bash", "-c", "exit 3"]), 42, 0).status.code(), Some(3));
    // Of another job of the attempt, which found it taken.
    symlink("43", node.file("state/over")).unwrap();
    assert_eq!(node.run(&node.script(&["bash", "-c", "exit 4"]), 42, 1).status.code(), Some(4));
    fs::remove_file(node.file("state/over")).unwrap();
    symlink("42", node.file("state/over")).unwrap();
    for restart in [1, 2] {
        let output = node.run(&touch, 42, restart);
        assert_eq!(output.status.code(), Some(120), "{}", stderr(&output));
        assert_eq!(stderr(&output), "tao-slurm: job 42 stops here: its end is already recorded\n");
    }
    assert!(!node.file("touched").exists());
    assert_eq!(node.words("state/exit")[..3], ["42", "1", "4"], "what was told stays");
}

#[test]
fn an_attempt_that_was_given_up_runs_nothing() {
    let node = Node::new();
    symlink("no-owner", node.file("state/run")).unwrap();
    let output = node.run(&node.script(&["touch", node.path("touched").as_str()]), 42, 0);
    assert_eq!(output.status.code(), Some(120));
    assert_eq!(stderr(&output), "tao-slurm: job 42 stops here: the attempt belongs to job no-owner\n");
    assert!(!node.has("touched") && !node.has("state/started"));
}

#[test]
fn a_job_whose_files_were_removed_leaves_no_new_ones() {
    let node = Node::new();
    let script = node.script(&["touch", node.path("touched").as_str()]);
    fs::remove_file(node.file("state/submit.1")).unwrap();
    // What a purge leaves, so that a submission which was held up comes too late.
    symlink("no-owner", node.file("state/submit.2")).unwrap();
    let stops = |node: &Node| {
        let output = node.run(&script, 42, 0);
        (output.status.code(), stderr(&output).contains("job 42 stops here: its files are gone"))
    };
    assert_eq!(stops(&node), (Some(120), true));
    assert!(!node.has("touched") && !node.has("state/run") && !node.has("logs"));
    fs::write(node.file("state/submit.3"), "").unwrap();
    assert_eq!(node.run(&script, 42, 0).status.code(), Some(0));
}
