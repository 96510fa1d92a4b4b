//! Signals that come to every process of a script, as Slurm sends them.

use std::{
    os::unix::{fs::PermissionsExt, process::CommandExt},
    process::{Command, Stdio},
    sync::mpsc,
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

/// bash loses the end of a program that it waits for if a signal with a trap comes in that moment, and then waits for ever: the kernel
/// delivers the signal when `wait4` returns, and the trap leaves bash's `wait` before it has noted the end. On busy processors it happened
/// to one script in twenty or thirty.
#[test]
fn a_signal_at_the_very_end_of_the_program_does_not_lose_it() {
    let text = "kill -USR1 $BATCH; sleep 0.5; kill -TERM $BATCH; sleep 0.5";
    // Many at once and each at another point, so that processors are busy.
    thread::scope(|scope| {
        for _ in 0..24 {
            scope.spawn(|| (0..5).for_each(|_| ends_with(143, text)));
        }
    });
}

/// Runs a program, and fails if its script waits for it for ever.
fn ends_with(code: i32, text: &str) {
    let node = Node::new();
    let mut command = node.command(&node.script(&["bash", "-c", text]), 42, 0);
    let mut script = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    let id = script.id().to_string();
    let (tell, ended) = mpsc::channel();
    thread::spawn(move || tell.send(script.wait().unwrap().code()));
    let end = ended.recv_timeout(Duration::from_mins(4));
    if end.is_err() {
        Command::new("kill").args(["-KILL", &id]).status().unwrap();
    }
    assert_eq!(end, Ok(Some(code)), "the script still waits for its program");
}

/// Slurm sends a warning up to a minute early: to a job with a short time limit together with its start.
#[test]
fn a_warning_that_comes_before_the_start_is_marked_ends_no_job() {
    let node = Node::new();
    let wait = "#!/bin/bash\ntouch \"$SITE/asks\"\nuntil [ -e \"$SITE/warned\" ]; do read -r -t 0.01 <> <(:); done\nexec /usr/bin/find \"$@\"\n";
    std::fs::write(node.file("bin/find"), wait.replace("$SITE", node.file("").to_str().unwrap())).unwrap();
    std::fs::set_permissions(node.file("bin/find"), PermissionsExt::from_mode(0o755)).unwrap();
    let script = node.script(&["bash", "-c", "trap 'echo heard >&2' USR1; sleep 0.2 & wait; wait"]);
    let mut command = node.command(&script, 42, 0);
    let child = command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
    node.wait_for("asks");
    assert!(Command::new("kill").args(["-USR1", &child.id().to_string()]).status().unwrap().success());
    std::fs::write(node.file("warned"), "").unwrap();
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    assert_eq!(node.words("state/exit")[..3], ["42", "0", "0"]);
    assert_eq!(node.words("state/warned")[..2], ["42", "0"]);
}
