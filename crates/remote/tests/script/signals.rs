//! Signals that come to every process of a script, as Slurm sends them.

use std::{
    os::unix::process::CommandExt,
    process::{Command, Stdio},
    thread,
    time::{Duration, Instant},
};

use crate::node::{Node, stderr};

/// Told to the whole group of the script so long after it has marked its start. Whether it listened by then.
fn is_heard_after(delay: Duration) -> bool {
    let node = Node::new();
    let script = node.script(&["sleep", "0.3"]);
    let mut command = node.command(&script, 42, 0);
    let child = command.process_group(0).stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
    while !node.has("state/started") {
        thread::yield_now();
    }
    let begun = Instant::now();
    while begun.elapsed() < delay {
        thread::yield_now();
    }
    let told = Command::new("kill").args(["-TERM", "--", &format!("-{}", child.id())]).status().unwrap();
    assert!(told.success());
    let output = child.wait_with_output().unwrap();
    if output.status.code().is_none() {
        return false;
    }
    assert_eq!(output.status.code(), Some(143), "{}", stderr(&output));
    assert_eq!(node.words("state/exit")[..3], ["42", "0", "143"], "after {delay:?}");
    assert!(!stderr(&output).contains("mv: "), "{}", stderr(&output));
    true
}

/// A child that is still a copy of the script has its traps.
#[test]
fn only_the_script_itself_leaves_its_last_word() {
    let heard = (0..30).filter(|step| is_heard_after(Duration::from_micros(step * 200)));
    assert!(heard.count() > 5, "it was told too early");
}
