//! A state directory without room.

use std::process::{Command, Output};

use test_case::test_case;

use crate::node::{Node, stderr};

/// What a job says whose state directory has 128 kB of room; `before` and `after` are commands.
fn in_little_room(node: &Node, program: &[&str], before: &str, after: &str) -> Output {
    let script = node.command(&node.script(program), 42, 0).get_args().next().unwrap().to_owned();
    let mut run = Command::new("unshare");
    run.args(["--map-root-user", "--mount", "bash", "-euc"])
        .arg(format!(
            "mount -t tmpfs -o size=128k tmpfs state; touch state/submit.1 state/main.{{out,err}}
             {before}
             bash \"$1\" || echo \"$?\"; {after}"
        ))
        .arg("bash")
        .arg(script)
        .current_dir(node.dir.path())
        .env("PATH", format!("{}:/usr/bin:/bin", node.file("bin").display()))
        .env("SITE", node.dir.path())
        .envs([("SLURM_JOB_ID", "42"), ("SLURM_RESTART_COUNT", "0"), ("SLURMD_NODENAME", "node01")]);
    run.output().unwrap()
}

#[test]
fn a_disk_that_the_job_has_filled_has_room_for_its_last_word() {
    let node = Node::new();
    let fill = format!("head -c 1M /dev/zero >{}; exit 5", node.path("state/filling"));
    let output = in_little_room(&node, &["bash", "-c", &fill], "", "cat state/exit; df --output=avail state");
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    let lines: Vec<&str> = said.lines().map(str::trim).collect();
    assert_eq!(lines.first(), Some(&"5"), "{said}{}", stderr(&output));
    assert!(lines[1].starts_with("42 0 5 "), "{said}{}", stderr(&output));
    assert_eq!(lines.last(), Some(&"0"), "the disk is full: {said}");
}

#[test_case("head -c 1M /dev/zero >state/filling || :"; "nothing")]
#[test_case("head -c 1M /dev/zero >state/filling || :; truncate -s -4096 state/filling"; "its note alone")]
fn a_run_whose_marks_have_no_room_does_not_begin(before: &str) {
    let node = Node::new();
    let output = in_little_room(&node, &["touch", node.path("touched").as_str()], before, "ls state");
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    assert_eq!(said.lines().next(), Some("119"), "{said}{}", stderr(&output));
    assert!(!node.has("touched") && !said.contains("started\n"), "{said}");
    assert!(stderr(&output).contains("its markers cannot be written to"), "{}", stderr(&output));
}
