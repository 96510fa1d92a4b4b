//! Runs rendered batch scripts under a real bash, with fakes of Slurm's programs that run what they are given.

#![expect(clippy::unwrap_used, reason = "in a test a failing unwrap is a failing test")]

mod components;
mod environment;
mod given_anew;
mod hostile;
mod limits;
mod node;
mod node_failure;
mod self_cancel;
mod signals;

use std::{
    collections::BTreeMap,
    fs,
    os::unix::fs::{MetadataExt, PermissionsExt},
};

use remote::{BatchScript, Component, Container, Place};
use test_case::test_case;

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

/// What a job says whose state directory has 128 kB of room; `before` and `after` are commands.
fn in_little_room(node: &Node, program: &[&str], before: &str, after: &str) -> std::process::Output {
    let script = node.command(&node.script(program), 42, 0).get_args().next().unwrap().to_owned();
    let mut run = std::process::Command::new("unshare");
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

#[test_case(" JobState=RUNNING PreemptTime=None ", true; "it runs")]
#[test_case(" JobState=PENDING PreemptTime=None ", true; "its start was forgotten")]
#[test_case("", true; "no answer")]
#[test_case(" JobState=COMPLETING PreemptTime=None ", false; "it was put back")]
#[test_case(" JobState=RUNNING Requeue=1 PreemptTime=2026-11-22T10:00:00 SuspendTime=None ", false; "it gives way")]
#[test_case(" JobState=RUNNING Requeue=0 PreemptTime=2026-11-22T10:00:00 SuspendTime=None ", true; "it is ended for another")]
#[test_case(" JobState=RUNNING Requeue=1 PreemptTime=2026-11-22T10:00:00 SuspendTime=2026-11-22T10:05:00 ", true; "it was suspended")]
#[test_case(" JobState=RUNNING Requeue=1 PreemptTime=2026-11-22T10:00:00 SuspendTime=2026-11-22T09:00:00 ", false; "it was suspended before, and gives way")]
#[test_case(" JobState=COMPLETING Requeue=0 PreemptTime=None ", true; "it is ended, and will not run again")]
fn a_run_that_goes_on_later_has_not_ended_well(told: &str, marked: bool) {
    let node = Node::new();
    let says = format!(
        "#!/bin/bash\nif [ \"$*\" = '-o show job 42' ]; then echo 'JobId=42 JobName=job-1{told}'; fi\n"
    );
    fs::write(node.file("bin/scontrol"), says).unwrap();
    let script = node.script(&["/bin/bash", "-c", "echo ran"]);
    assert_eq!(node.run(&script, 42, 0).status.code(), Some(0));
    assert_eq!(node.has("state/exit"), marked);
    let again = node.run(&script, 42, 1);
    assert_eq!((again.status.code(), again.stdout.is_empty()), (Some(0), marked), "{}", stderr(&again));
}

/// Signals come to every process of a script: they end the question whether it was put back, and what asks it.
#[test_case("", true; "Slurm has forgotten it")]
#[test_case(" JobState=RUNNING PreemptTime=None ", true; "it was no end")]
#[test_case(" JobState=COMPLETING PreemptTime=None ", false; "it was put back")]
fn what_ended_well_has_done_so_though_a_signal_comes_after_it(told: &str, marked: bool) {
    let node = Node::new();
    let asked = node.path("asked");
    let says = format!(
        "#!/bin/bash\nif [ -e {asked} ]; then echo 'JobId=42 JobName=job-1{told}'; exit; fi\n\
         touch {asked}\nkill -TERM \"$(cat {})\"\nexit 143\n",
        node.path("batch")
    );
    fs::write(node.file("bin/scontrol"), says).unwrap();
    let script = node.script(&["bash", "-c", &format!("echo $BATCH >{}", node.path("batch"))]);
    assert_eq!(node.run(&script, 42, 0).status.code(), Some(0));
    assert!(node.has("asked"));
    assert_eq!(node.has("state/exit"), marked);
    assert!(!marked || node.words("state/exit")[2] == "0", "{:?}", node.words("state/exit"));
}

#[test]
fn a_signal_does_not_end_those_who_write_the_mark() {
    let node = Node::new();
    // As to every process of a script.
    let says = format!(
        "#!/bin/bash\nif [ -s {batch} ]; then kill -TERM \"$(cat {batch})\" $$ 2>/dev/null; fi\nexec /bin/dd \"$@\"\n",
        batch = node.path("batch")
    );
    fs::write(node.file("bin/dd"), says).unwrap();
    fs::set_permissions(node.file("bin/dd"), fs::Permissions::from_mode(0o755)).unwrap();
    let script = node.script(&["bash", "-c", &format!("echo $BATCH >{}", node.path("batch"))]);
    assert_eq!(node.run(&script, 42, 0).status.code(), Some(0));
    assert_eq!(node.words("state/exit")[..3], ["42", "0", "0"]);
    assert_ne!(node.words("state/exit")[3], "", "when it ended");
}

#[test]
fn what_ended_well_has_done_so_though_it_is_killed_while_slurm_is_asked() {
    let node = Node::new();
    let says = format!("#!/bin/bash\nkill -KILL \"$(cat {})\"\n", node.path("batch"));
    fs::write(node.file("bin/scontrol"), says).unwrap();
    let mut script = node.script(&["bash", "-c", &format!("echo $BATCH >{}", node.path("batch"))]);
    // Its clock would outlive it, and hold on to what it prints to.
    script.soft_timeout = None;
    assert_eq!(node.run(&script, 42, 0).status.code(), None);
    assert_eq!(node.words("state/exit")[..3], ["42", "0", "0"]);
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
    std::fs::remove_file(node.path("state/exit").as_str()).unwrap();
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
    std::os::unix::fs::symlink("43", node.file("state/over")).unwrap();
    assert_eq!(node.run(&node.script(&["bash", "-c", "exit 4"]), 42, 1).status.code(), Some(4));
    fs::remove_file(node.file("state/over")).unwrap();
    std::os::unix::fs::symlink("42", node.file("state/over")).unwrap();
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
    std::os::unix::fs::symlink("no-owner", node.file("state/run")).unwrap();
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
    std::os::unix::fs::symlink("no-owner", node.file("state/submit.2")).unwrap();
    let stops = |node: &Node| {
        let output = node.run(&script, 42, 0);
        (output.status.code(), stderr(&output).contains("job 42 stops here: its files are gone"))
    };
    assert_eq!(stops(&node), (Some(120), true));
    assert!(!node.has("touched") && !node.has("state/run") && !node.has("logs"));
    fs::write(node.file("state/submit.3"), "").unwrap();
    assert_eq!(node.run(&script, 42, 0).status.code(), Some(0));
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

/// A step that starts like this, with these lines of setup.
fn set_up(node: &Node, lines: &[&str], argv: &[&str]) -> BatchScript {
    let lines = lines.join("\0") + "\0";
    fs::write(node.file("setup lines"), lines).unwrap();
    let mut script = node.script(argv);
    script.components[0].setup = Some(node.path("setup lines"));
    script
}

#[test]
fn setup_comes_before_the_program_and_changes_its_environment() {
    let node = Node::new();
    let lines = [
        "unset NOT_SET; echo \"$NOT_SET\" >/dev/null; false || true",
        "activate() {\n  export FROM_SETUP=\"$1 $GIVEN\"\n}",
        "activate 'a b'; set -- lost",
    ];
    let script = set_up(&node, &lines, &["bash", "-c", "echo $FROM_SETUP $1", "x", "word"]);
    node.give(&[("GIVEN", "c"), ("IFS", "/")]);
    let output = node.run(&script, 42, 0);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    assert_eq!(String::from_utf8_lossy(&output.stdout), "a b c word\n");
}

#[test_case("module load cuda/0 2>/dev/null" ; "a command that fails")]
#[test_case("if then" ; "what is no bash")]
#[test_case("return 3" ; "an early return")]
fn a_line_of_setup_that_fails_ends_the_job_before_its_program(line: &str) {
    for nodes in [1, 2] {
        let node = Node::new();
        let script = set_up(&node, &["true", line, "true"], &["touch", node.path("touched").as_str()]);
        let output = node.run(&on_nodes(script, nodes), 42, 0);
        assert_eq!(output.status.code(), Some(116), "{}", stderr(&output));
        assert!(!node.has("touched"));
    }
}

#[test]
fn a_program_starts_in_its_directory() {
    let node = Node::new();
    let mut script = node.script(&["pwd"]);
    script.components[0].workdir = Some(node.path("results"));
    let output = node.run(&script, 42, 0);
    assert_eq!(String::from_utf8_lossy(&output.stdout), format!("{}\n", node.path("results")));
    let node = Node::new();
    let mut script = node.script(&["pwd"]);
    script.components[0].workdir = Some(node.path("nowhere"));
    let output = node.run(&script, 42, 0);
    assert_eq!(output.status.code(), Some(117), "{}", stderr(&output));
    assert!(stderr(&output).contains("/nowhere"), "{}", stderr(&output));
}

#[test]
fn a_container_is_described_to_srun() {
    let node = Node::new();
    let container = Container {
        image: "/lustre/a b.sqsh".to_owned(),
        mounts: vec!["/lustre".to_owned(), "/d x:/d:ro".to_owned()],
        hook_env: BTreeMap::new(),
        without_home: false,
    };
    let inside = Component { place: Place::Pyxis(container), ..component(&["true"]) };
    let output = node.run(&BatchScript { components: vec![inside], ..node.script(&[]) }, 42, 0);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let args = node.read("srun.args");
    let args: Vec<&str> = args.split('\0').collect();
    assert_eq!(
        args[..6],
        [
            "--export=ALL",
            "--kill-on-bad-exit=1",
            "--container-image=/lustre/a b.sqsh",
            "--container-mounts=/lustre,/d x:/d:ro",
            "--",
            "bash",
        ]
    );
    assert_eq!(args[args.len() - 3..], ["--exec", "true", ""]);
}
