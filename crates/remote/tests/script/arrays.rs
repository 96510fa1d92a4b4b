//! Arrays: each task runs with its own parameters, and the attempt belongs to one array.

use std::{fs, os::unix::fs::symlink, process::Output};

use remote::{
    BatchScript,
    script::{ArrayNumbers, task_line},
};
use slurm::EnvKey;

use crate::node::{Node, stderr};

/// An attempt with tasks 10 and 11 of twelve.
fn array(node: &Node, argv: &[&str]) -> BatchScript {
    let mut script = node.script(argv);
    script.directives.array = Some(("0-1".parse().unwrap(), None));
    script.array = Some(ArrayNumbers { base: 10, count: 12 });
    let lr: EnvKey = "LR".parse().unwrap();
    let line = |index, lr_of: &str| {
        task_line(index, format!("{{\"LR\":\"{lr_of}\"}}").as_bytes(), [(&lr, lr_of.to_owned())].into_iter())
    };
    fs::write(node.file("state/tasks.list"), line(0, "0.1") + &line(1, "a 'b'\n")).unwrap();
    fs::create_dir(node.file("state/tasks")).unwrap();
    for log in ["0.out", "0.err", "1.out", "1.err"] {
        fs::write(node.file(&format!("state/{log}")), "").unwrap();
    }
    script
}

/// Slurm starts a task of an array: by its own id, that of the array, and its index.
fn run(node: &Node, script: &BatchScript, job: u32, array: u32, index: u32) -> Output {
    let told = format!(
        "JobId={job} ArrayJobId={array} ArrayTaskId={index} JobName=job-1 JobState=RUNNING PreemptTime=None \n"
    );
    fs::write(node.file("told"), told).unwrap();
    let mut command = node.command(script, job, 0);
    command.env("SLURM_ARRAY_JOB_ID", array.to_string()).env("SLURM_ARRAY_TASK_ID", index.to_string());
    command.output().unwrap()
}

const SHOW: &[&str] = &[
    "bash",
    "-c",
    "printf '%s|' $TAO_TASK $TAO_TASK_COUNT \"$LR\"; cat \"$TAO_TASK_FILE\"; touch \"$TAO_API_RESULTS_DIR/x\"",
];

#[test]
fn each_task_runs_once_with_its_parameters_and_directories() {
    let node = Node::new();
    let script = array(&node, SHOW);
    for (job, index, shown) in
        [(43, 0, "10|12|0.1|{\"LR\":\"0.1\"}"), (42, 1, "11|12|a 'b'\n|{\"LR\":\"a 'b'\n\"}")]
    {
        let output = run(&node, &script, job, 42, index);
        assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
        assert_eq!(String::from_utf8_lossy(&output.stdout), shown);
        let task = 10 + index;
        assert!(
            node.has(&format!("results/{task}/x")) && node.has(&format!("logs/job-1-42_{index}/main.out"))
        );
        assert!(node.read(&format!("state/tasks/{task}/exit")).starts_with("42 0 0 "), "by the array's id");
    }
    let again = run(&node, &script, 43, 42, 0);
    assert_eq!((again.status.code(), again.stdout.len()), (Some(0), 0), "it has run: {}", stderr(&again));
}

#[test]
fn the_last_task_has_the_id_of_its_array_and_asks_slurm_for_itself_alone() {
    let node = Node::new();
    let script = array(&node, SHOW);
    // As recorded: by the id of the array scontrol shows its other tasks too.
    let others = "JobId=43 ArrayJobId=42 ArrayTaskId=0 JobName=job-1 JobState=COMPLETING PreemptTime=None \n";
    let fake = format!(
        "#!/bin/bash\necho \"$@\" >>\"$SITE/scontrol.calls\"\ncat \"$SITE/told\"\ncase $* in *\\ 42) printf '{others}' ;; esac\n"
    );
    fs::write(node.file("bin/scontrol"), fake).unwrap();
    let output = run(&node, &script, 42, 42, 1);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    assert_eq!(node.read("scontrol.calls"), "-o show job 42_1\n");
    assert!(node.has("state/tasks/11/exit"), "the end of another task is not its own");
}

#[test]
fn a_second_array_of_an_attempt_runs_nothing() {
    let node = Node::new();
    let script = array(&node, SHOW);
    assert_eq!(run(&node, &script, 42, 42, 0).status.code(), Some(0));
    // Task 11 has not begun in the first array.
    let second = run(&node, &script, 51, 50, 1);
    assert_eq!((second.status.code(), second.stdout.len()), (Some(120), 0));
    assert!(stderr(&second).contains("the attempt belongs to job 42"), "{}", stderr(&second));
    assert!(!node.has("state/tasks/11"));
}

#[test]
fn no_task_of_an_attempt_that_was_given_up_runs() {
    let node = Node::new();
    let script = array(&node, SHOW);
    symlink("no-owner", node.file("state/run")).unwrap();
    let output = run(&node, &script, 42, 42, 0);
    assert_eq!((output.status.code(), output.stdout.len()), (Some(120), 0), "{}", stderr(&output));
}

#[test]
fn a_task_without_parameters_in_the_list_runs_nothing() {
    let node = Node::new();
    let script = array(&node, SHOW);
    let output = run(&node, &script, 44, 42, 2);
    assert_eq!((output.status.code(), output.stdout.len()), (Some(121), 0), "{}", stderr(&output));
}

#[test]
fn a_task_that_has_run_returns_its_code_again_though_its_parameters_cannot_be_written() {
    let node = Node::new();
    let script = array(&node, SHOW);
    assert_eq!(run(&node, &script, 43, 42, 0).status.code(), Some(0));
    // As on a full disk.
    fs::create_dir(node.file("state/tasks/10/.parameters")).unwrap();
    let again = run(&node, &script, 43, 42, 0);
    assert_eq!((again.status.code(), again.stdout.len()), (Some(0), 0), "{}", stderr(&again));
    fs::create_dir_all(node.file("state/tasks/11/.parameters")).unwrap();
    let first = run(&node, &script, 42, 42, 1);
    assert_eq!((first.status.code(), first.stdout.len()), (Some(121), 0), "{}", stderr(&first));
}
