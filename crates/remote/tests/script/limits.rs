//! Warnings, the job's own time limit, and going back into the queue.

use std::{
    fs,
    os::unix::fs::MetadataExt,
    process::{Command, Stdio},
};

use remote::{BatchScript, Kind, OnWarning, script::BEGIN_MARK};
use slurm::RunTime;
use test_case::test_case;

use crate::{
    components::table,
    node::{Node, on_nodes, stderr},
};

fn limited(node: &Node, seconds: u32, argv: &[&str]) -> BatchScript {
    BatchScript { soft_timeout: RunTime::from_seconds(seconds), ..node.script(argv) }
}

#[test]
fn at_its_limit_a_job_goes_back_into_the_queue_and_has_not_ended() {
    let node = Node::new();
    let output = node.run(&limited(&node, 1, &["sleep", "600"]), 42, 0);
    assert!(stderr(&output).contains("its own time limit of 1 s"), "{}", stderr(&output));
    assert_eq!(node.words("state/requeued")[..3], ["42", "0", "1"]);
    assert_eq!(node.words("state/limited")[..2], ["42", "0"]);
    assert!(!node.has("state/exit"), "a run that goes on has not ended");
    // Asked whose the id is before the program is ended, and again before the job goes back.
    assert_eq!(node.read("scontrol.calls"), "-o show job 42\n-o show job 42\nrequeue 42\n");
    assert_eq!(node.read("scancel.calls"), "--signal=TERM 42\n");
}

#[test]
fn it_goes_back_only_so_often() {
    let node = Node::new();
    for restart in 0..2 {
        node.run(&limited(&node, 1, &["sleep", "600"]), 42, restart);
    }
    let output = node.run(&limited(&node, 1, &["sleep", "600"]), 42, 2);
    assert_eq!(output.status.code(), Some(124));
    assert!(stderr(&output).contains("has requeued itself 2 times, which is the most it may"));
    assert_eq!(node.words("state/exit")[..3], ["42", "2", "124"]);
    assert_eq!(node.read("scontrol.calls").matches("requeue 42\n").count(), 2);
}

#[test]
fn a_job_that_may_not_requeue_ends_with_124() {
    let node = Node::new();
    let mut script = limited(&node, 1, &["sleep", "600"]);
    script.directives.requeue = false;
    assert_eq!(node.run(&script, 42, 0).status.code(), Some(124));
    assert_eq!(node.words("state/exit")[2], "124");
    assert!(!node.read("scontrol.calls").contains("requeue"), "{}", node.read("scontrol.calls"));
}

#[test]
fn a_requeue_that_slurm_refuses_is_the_end_and_does_not_count() {
    let node = Node::new();
    fs::write(node.file("refuse"), "").unwrap();
    let output = node.run(&limited(&node, 1, &["sleep", "600"]), 42, 0);
    assert_eq!(output.status.code(), Some(124));
    assert!(stderr(&output).contains("did not requeue"), "{}", stderr(&output));
    assert_eq!(node.words("state/requeued")[2], "0");
    assert_eq!(node.words("state/exit")[2], "124");
}

#[test]
fn a_program_that_ends_by_itself_with_124_is_not_requeued() {
    let node = Node::new();
    assert_eq!(node.run(&node.script(&["bash", "-c", "exit 124"]), 42, 0).status.code(), Some(124));
    assert!(!node.has("scontrol.calls") && !node.has("state/limited"));
}

#[test]
fn at_its_limit_a_program_has_time_to_put_its_work_in_order() {
    let node = Node::new();
    let text = "trap 'sleep 0.3; echo saved; exit 0' TERM; while :; do sleep 0.1; done";
    // By then the program listens, on a busy machine too.
    let mut script = limited(&node, 5, &["bash", "-c", text]);
    script.directives.requeue = false;
    let output = node.run(&script, 42, 0);
    assert_eq!((output.status.code(), output.stdout.as_slice()), (Some(124), &b"saved\n"[..]));
}

#[test]
fn before_its_limit_a_program_is_warned_once() {
    let node = Node::new();
    let text =
        format!("trap 'echo warned' USR1; {BEGIN_MARK}; for i in {{1..600}}; do sleep 0.1; done; echo done");
    let mut script = limited(&node, 300, &["bash", "-c", &text]);
    script.soft_timeout = RunTime::from_seconds(10);
    script.directives.warning_seconds = 5;
    script.directives.requeue = false;
    let output = node.run(&script, 42, 0);
    assert_eq!(String::from_utf8_lossy(&output.stdout), "warned\n", "{}", stderr(&output));
    assert_eq!(node.words("state/warned")[..2], ["42", "0"]);
    assert_eq!(output.status.code(), Some(124));
}

#[test]
fn slurms_own_warning_is_passed_on_and_the_program_goes_on() {
    let node = Node::new();
    let text = format!(
        "trap 'echo warned; is_warned=1' USR1; {BEGIN_MARK}; kill -USR1 $BATCH; \
         until [ -n \"$is_warned\" ]; do sleep 0.1; done; echo done; exit 3"
    );
    let output = node.run(&node.script(&["bash", "-c", &text]), 42, 0);
    assert_eq!(String::from_utf8_lossy(&output.stdout), "warned\ndone\n", "{}", stderr(&output));
    assert_eq!(output.status.code(), Some(3));
}

/// The warning comes while the container is set up, which it would end.
#[test_case(OnWarning::Default, 1, 1; "a command")]
#[test_case(OnWarning::Default, 2, 1; "a command on two nodes")]
#[test_case(OnWarning::Default, 1, 2; "a command of two tasks on a node")]
#[test_case(OnWarning::Ignore, 2, 1; "a training on two nodes")]
fn a_warning_waits_until_the_program_has_begun(on_warning: OnWarning, nodes: u32, tasks_per_node: u32) {
    let node = Node::new();
    fs::write(node.file("setup"), "").unwrap();
    let ready = node.file("ready");
    // Of two tasks, one takes longer: until then the warning waits, however slowly the other gets its handler.
    let other = node.file(if nodes * tasks_per_node == 2 { "state/begun.main.1" } else { "set_up" });
    // A warning that does not wait has a second. bash cannot handle a signal that was ignored at its start.
    let text = match on_warning {
        OnWarning::Default => format!(
            "trap 'if [ -e {} ]; then echo warned; fi; exit 3' USR1; {BEGIN_MARK}; sleep 1; : >{}; while :; do sleep 0.1; done",
            other.display(),
            ready.display()
        ),
        OnWarning::Ignore => format!(
            "import os, signal, sys, time\n\
             signal.signal(signal.SIGUSR1, lambda *_: (print(os.path.exists('{}') and 'warned', flush=True), sys.exit(3)))\n\
             time.sleep(1)\n\
             open('{}', 'w')\n\
             time.sleep(60)",
            other.display(),
            ready.display()
        ),
    };
    let program = if on_warning == OnWarning::Default { "bash" } else { "python3" };
    let mut script = node.script(&[program, "-c", &text]);
    script.components[0].on_warning = on_warning;
    let mut script = on_nodes(script, nodes);
    script.directives.tasks_per_node = tasks_per_node;
    script.components[0].tasks_per_node = tasks_per_node;
    let mut command = node.command(&script, 42, 0);
    let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    node.wait_for("srun.args");
    let told = Command::new("kill").args(["-USR1", &child.id().to_string()]).status().unwrap();
    assert!(told.success());
    node.wait_for("state/warned");
    fs::write(node.file("set_up"), "").unwrap();
    node.wait_for("state/begun.main.0");
    if nodes * tasks_per_node == 2 {
        node.wait_for("ready");
        fs::write(other, "").unwrap();
    }
    let output = child.wait_with_output().unwrap();
    assert_eq!(
        (output.status.code(), output.stdout.as_slice()),
        (Some(3), &b"warned\n"[..]),
        "{}",
        stderr(&output)
    );
}

#[test]
fn a_program_that_ends_before_it_has_begun_is_not_waited_for() {
    let node = Node::new();
    let text = "kill -USR1 $BATCH; sleep 0.5; echo done; exit 4";
    let output = node.run(&node.script(&["bash", "-c", text]), 42, 0);
    assert_eq!((output.status.code(), output.stdout.as_slice()), (Some(4), &b"done\n"[..]));
    assert!(node.has("state/warned"));
}

#[test]
fn a_job_is_ended_while_its_warning_waits() {
    let node = Node::new();
    let text = "kill -USR1 $BATCH; sleep 0.5; kill -TERM $BATCH; sleep 0.5";
    let output = node.run(&node.script(&["bash", "-c", text]), 42, 0);
    assert_eq!(output.status.code(), Some(143), "{}", stderr(&output));
    assert_eq!(node.words("state/exit")[..3], ["42", "0", "143"]);
}

#[test]
fn a_program_that_knows_nothing_of_warnings_goes_on() {
    let node = Node::new();
    let mut script = node.script(&["bash", "-c", "kill -USR1 $BATCH; sleep 2; echo done"]);
    script.components[0].on_warning = OnWarning::Ignore;
    let output = node.run(&script, 42, 0);
    assert_eq!((output.status.code(), output.stdout.as_slice()), (Some(0), &b"done\n"[..]));
}

#[test]
fn a_signal_for_the_limit_before_its_time_changes_nothing() {
    let node = Node::new();
    let text = "kill -USR2 $BATCH; sleep 0.3; exit 5";
    assert_eq!(node.run(&node.script(&["bash", "-c", text]), 42, 0).status.code(), Some(5));
}

#[test]
fn the_marks_of_the_run_before_do_not_speak_for_this_one() {
    let node = Node::new();
    for name in ["exit", "warned", "limited", "self_canceled", "begun.main.1", "failed.main", "step.main"] {
        fs::write(node.file(&format!("state/{name}")), "42 0 1 1\n").unwrap();
    }
    let seen = format!("ls {}", node.path("state"));
    let output = node.run(&node.script(&["bash", "-c", &seen]), 42, 1);
    assert_eq!(
        String::from_utf8_lossy(&output.stdout).lines().collect::<Vec<_>>(),
        ["bin", "main.err", "main.out", "run", "started", "status_from", "submit.1"]
    );
}

#[test]
fn what_is_in_the_status_files_at_the_start_is_kept() {
    let node = Node::new();
    fs::create_dir_all(node.file("results/a/b/c")).unwrap();
    for (name, text) in [("status.json", "1234"), ("a/b/status.json", "12"), ("a/b/c/status.json", "deep")] {
        fs::write(node.file(&format!("results/{name}")), text).unwrap();
    }
    node.run(
        &node.script(&["bash", "-c", "echo more >>\"$1\"", "x", node.path("results/status.json").as_str()]),
        42,
        0,
    );
    let line = |name: &str, size: u32| {
        let path = node.file(&format!("results/{name}"));
        format!("{} {size} {}", fs::metadata(&path).unwrap().ino(), path.display())
    };
    let text = node.read("state/status_from");
    let mut lines: Vec<&str> = text.lines().filter(|line| !line.is_empty()).collect();
    lines.sort_by_key(|line| line.len());
    assert_eq!(lines, ["run 0".to_owned(), line("status.json", 4), line("a/b/status.json", 2)]);
}

#[test]
fn no_results_are_no_reason_to_fail() {
    let node = Node::new();
    fs::remove_dir(node.file("results")).unwrap();
    let output = node.run(&node.script(&["true"]), 42, 0);
    assert_eq!((output.status.code(), stderr(&output)), (Some(0), String::new()));
    assert_eq!(node.read("state/status_from"), "run 0\n\n");
}

#[test]
fn a_limit_that_comes_while_services_end_does_not_change_what_has_succeeded() {
    let node = Node::new();
    let serve = "trap 'sleep 7; exit 0' TERM; touch $SITE/serves; while :; do sleep 0.1; done";
    let score = "until [ -e $SITE/serves ]; do sleep 0.1; done";
    let table = table(&node, &[("model", Kind::Service, serve), ("score", Kind::Step, score)]);
    // After the step has ended, on a busy machine too, and before the service has.
    let script = BatchScript { soft_timeout: RunTime::from_seconds(6), ..table };
    let output = node.run(&script, 42, 0);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    assert!(!node.has("state/limited") && !node.has("state/requeued"), "{}", stderr(&output));
}
