//! An attempt that queues the next one ahead, and that one.

use std::{
    fs,
    os::unix::fs::{PermissionsExt, symlink},
    process::Output,
    thread,
    time::{Duration, Instant, SystemTime},
};

use remote::{
    BatchScript,
    script::{BEGIN_MARK, Chain},
};
use slurm::RunTime;
use test_case::test_case;

use crate::node::{Node, stderr};

const SBATCH: &str = r#"#!/bin/bash
env >"$SITE/sbatch.env"
printf '%s\n' "$@" >"$SITE/sbatch.args"
if [ -e "$SITE/full" ]; then
  echo 'sbatch: error: Batch job submission failed: Job violates accounting/QOS policy' >&2
  exit 1
fi
echo '77;lab'
"#;
const SACCT: &str = r#"#!/bin/bash
cat "$SITE/accounted" 2>/dev/null
"#;
const MINUTE: u64 = 60;

fn chained(node: &Node, argv: &[&str]) -> BatchScript {
    for (name, text) in [("bin/sbatch", SBATCH), ("bin/sacct", SACCT)] {
        fs::write(node.file(name), text).unwrap();
        fs::set_permissions(node.file(name), fs::Permissions::from_mode(0o755)).unwrap();
    }
    fs::create_dir_all(node.file("state/1")).unwrap();
    for file in ["submit.1", "main.out", "main.err"] {
        fs::write(node.file(&format!("state/1/{file}")), "").unwrap();
    }
    let chain = Chain {
        no: 1,
        first_name: "job-1".parse().unwrap(),
        script_path: node.path("job.sbatch"),
        used_seconds: 0,
        most_seconds: 5 * 3600,
        causes: ["TIMEOUT", "75"].map(str::to_owned).to_vec(),
    };
    let mut script = BatchScript { chain: Some(chain), state_dir: node.path("state/1"), ..node.script(argv) };
    script.directives.requeue = false;
    script
}

fn now() -> u64 {
    SystemTime::UNIX_EPOCH.elapsed().unwrap().as_secs()
}

/// What attempt 1 left, which began so many seconds ago as Slurm job 42, and what Slurm says of it.
fn ended(node: &Node, ago: u64, state: &str, exit: Option<u8>) {
    symlink("42", node.file("state/1/run")).unwrap();
    fs::write(node.file("state/1/started"), format!("42 0 {} node01\n", now() - ago)).unwrap();
    fs::write(node.file("state/1/used"), "100\n").unwrap();
    if let Some(code) = exit {
        fs::write(node.file("state/1/exit"), format!("42 0 {code} {}\ndone\n", now())).unwrap();
    }
    told(node, state, now());
    fs::create_dir(node.file("state/2")).unwrap();
    for file in ["submit.1", "main.out", "main.err"] {
        fs::write(node.file(&format!("state/2/{file}")), "").unwrap();
    }
}

/// The controller's words of attempt 1. `end`: seconds since 1970.
fn told(node: &Node, state: &str, end: u64) {
    let told = format!(
        "JobId=42 JobName=job-1 UserId=u JobState={state} Reason=None SubmitTime=1 EndTime={end} Deadline=N/A\n"
    );
    fs::write(node.file("told"), told).unwrap();
}

/// Slurm starts attempt 2 as job 77.
fn next(node: &Node, script: &BatchScript) -> Output {
    node.command(script, 77, 0).arg("2").output().unwrap()
}

#[test]
fn an_attempt_queues_the_next_one_beside_its_program() {
    let node = Node::new();
    // The environment of the job is that of the service's submission, and no more.
    let script =
        chained(&node, &["bash", "-c", &format!("until [ -e {} ]; do sleep 0.1; done", node.path("go"))]);
    let mut command = node.command(&script, 42, 0);
    command.env("SLURM_CONF", "/etc/lab.conf").env("SLURM_EXPORT_ENV", "ALL").env("SBATCH_EXPORT", "ALL");
    let mut running = command.spawn().unwrap();
    node.wait_for("state/2/slurm_id");
    wait_until(|| node.read("state/2/slurm_id") == "77\n");
    fs::write(node.file("go"), "").unwrap();
    assert!(running.wait().unwrap().success());
    assert!(node.has("state/2/submit.1"), "the service finds that somebody has submitted it");
    let state = node.path("state/2");
    let expected = format!(
        "--parsable\n--job-name=job-1-r2\n--output={state}/main.out\n--error={state}/main.err\n\
         --dependency=afternotok:42\n--kill-on-invalid-dep=yes\n{}\n2\n",
        node.path("job.sbatch")
    );
    assert_eq!(node.read("sbatch.args"), expected);
    let inherited = node.read("sbatch.env");
    assert!(
        inherited.contains("\nSLURM_CONF=/etc/lab.conf\n") && !inherited.contains("SBATCH_"),
        "{inherited}"
    );
    assert_eq!(inherited.matches("SLURM_").count(), 1, "{inherited}");
}

fn wait_until(what: impl Fn() -> bool) {
    let begun = Instant::now();
    while !what() {
        assert!(begun.elapsed() < Duration::from_mins(2), "it does not come");
        thread::yield_now();
    }
}

#[test]
fn what_cannot_be_queued_ahead_is_left_to_the_service() {
    let node = Node::new();
    let script = chained(
        &node,
        &["bash", "-c", &format!("until grep -q queued {}; do sleep 0.1; done", node.path("err"))],
    );
    fs::write(node.file("full"), "").unwrap();
    let errors = fs::File::create(node.file("err")).unwrap();
    assert!(node.command(&script, 42, 0).stderr(errors).status().unwrap().success());
    assert!(
        node.read("err")
            .contains("attempt 2 could not be queued; when this one ends, the service submits it")
    );
    assert!(!node.has("state/2/slurm_id"));
}

#[test_case("TIMEOUT", None => true; "a time limit")]
#[test_case("TIMEOUT", Some(143) => true; "a time limit that the script has seen come")]
#[test_case("TIMEOUT", Some(0) => false; "a success whose end Slurm has not seen")]
#[test_case("FAILED", Some(75) => true; "an exit code of the policy")]
#[test_case("FAILED", Some(1) => false; "a failure of its own")]
#[test_case("FAILED", None => false; "a failure without a record")]
#[test_case("FAILED", Some(124) => false; "the code of a limit, without the mark of the limit")]
#[test_case("CANCELLED", Some(75) => false; "a cancellation")]
#[test_case("PREEMPTED", None => false; "a preemption, which the policy does not list")]
#[test_case("NODE_FAIL", None => false; "a node failure: the service excludes the node")]
#[test_case("COMPLETED", Some(0) => false; "a success")]
fn the_next_attempt_runs_after_a_planned_end(state: &str, exit: Option<u8>) -> bool {
    let node = Node::new();
    let script = chained(&node, &["touch", node.path("ran").as_ref()]);
    ended(&node, 5 * MINUTE, state, exit);
    let output = next(&node, &script);
    if node.has("ran") {
        assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
        assert_eq!(fs::read_link(node.file("state/2/run")).unwrap().to_str(), Some("77"));
        assert_eq!(node.words("state/2/exit")[..3], ["77", "0", "0"]);
        assert!(node.has("logs/job-1-r2-77/main.err"));
        return true;
    }
    assert_eq!(output.status.code(), Some(113), "{}", stderr(&output));
    assert!(stderr(&output).contains("attempt 2 has nothing to do"), "{}", stderr(&output));
    assert!(!node.has("state/2/run") && !node.has("state/2/exit"), "the service can still close it");
    false
}

#[test]
fn at_the_jobs_own_limit_it_goes_on() {
    let node = Node::new();
    let script = chained(&node, &["true"]);
    ended(&node, 5 * MINUTE, "FAILED", Some(124));
    fs::write(node.file("state/1/limited"), format!("42 0 {}\n", now())).unwrap();
    assert_eq!(next(&node, &script).status.code(), Some(0));
}

#[test_case(&[r#"{"status": "RUNNING"}"#, r#"{"status": "SUCCESS", "kpi": {"loss": 1}}"#] => false; "a success")]
#[test_case(&[r#"{"status":"FAILURE","message":"status: RUNNING"}"#] => false; "a failure")]
#[test_case(&[r#"{"status":"SUCCESS"}"#, r#"{"status":"SKIPPED"}"#] => false; "another word after it")]
#[test_case(&[r#"{"status":"SUCCESS"}"#, r#"{"status":"STARTED"}"#] => true; "of an attempt before that")]
#[test_case(&[] => true; "nothing")]
fn a_job_that_has_reported_its_end_is_not_repeated(lines: &[&str]) -> bool {
    let node = Node::new();
    let script = chained(&node, &["true"]);
    ended(&node, 5 * MINUTE, "TIMEOUT", None);
    let results = node.file("results/train");
    fs::create_dir_all(results.join("old")).unwrap();
    fs::write(results.join("old/status.json"), "{\"status\":\"SUCCESS\"}\n").unwrap();
    fs::write(results.join("status.json"), lines.join("\n") + "\n").unwrap();
    let an_hour_ago = SystemTime::UNIX_EPOCH + Duration::from_secs(now() - 60 * MINUTE);
    fs::File::options()
        .write(true)
        .open(results.join("old/status.json"))
        .unwrap()
        .set_modified(an_hour_ago)
        .unwrap();
    next(&node, &script).status.code() == Some(0)
}

#[test]
fn a_short_attempt_is_left_to_the_service_which_counts_it() {
    let node = Node::new();
    let script = chained(&node, &["true"]);
    ended(&node, 30, "FAILED", Some(75));
    assert_eq!(next(&node, &script).status.code(), Some(113));
}

#[test_case("JobId=42 JobName=other UserId=u JobState=TIMEOUT EndTime=1 Reason=None\n", "job-1|TIMEOUT|NOW\n" => true; "its id was given again")]
#[test_case("", "job-1|TIMEOUT|NOW\n" => true; "the controller has forgotten it")]
#[test_case("", "job-1|TIMEOUT|Unknown\n" => false; "accounting does not know its end")]
#[test_case("", "other|TIMEOUT|NOW\n" => false; "accounting has another job")]
#[test_case("", "job-1|CANCELLED by 1000|NOW\n" => false; "it was canceled")]
#[test_case("", "" => false; "nobody knows it")]
fn accounting_is_asked_if_the_controller_does_not_know_the_job(told: &str, accounted: &str) -> bool {
    let accounted = accounted.replace("NOW", &now().to_string());
    let node = Node::new();
    let script = chained(&node, &["true"]);
    ended(&node, 5 * MINUTE, "", None);
    fs::write(node.file("told"), told).unwrap();
    fs::write(node.file("accounted"), accounted).unwrap();
    next(&node, &script).status.code() == Some(0)
}

#[test]
fn an_attempt_that_slurm_starts_again_returns_its_code() {
    let node = Node::new();
    let script = chained(&node, &["touch", node.path("ran").as_ref()]);
    ended(&node, 5 * MINUTE, "TIMEOUT", None);
    assert_eq!(next(&node, &script).status.code(), Some(0));
    // Slurm and accounting do not know the one before any more.
    for file in ["told", "ran"] {
        fs::remove_file(node.file(file)).unwrap();
    }
    let output = next(&node, &script);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    assert!(stderr(&output).contains("Slurm has started this run of it before"), "{}", stderr(&output));
    assert!(!node.has("ran"));
}

#[test]
fn each_attempt_can_be_warned() {
    let node = Node::new();
    let script = chained(&node, &["bash", "-c", BEGIN_MARK]);
    ended(&node, 5 * MINUTE, "TIMEOUT", None);
    assert_eq!(next(&node, &script).status.code(), Some(0));
    let begun = |no: u32| {
        let files = fs::read_dir(node.file(&format!("state/{no}"))).unwrap();
        files
            .filter(|file| file.as_ref().unwrap().file_name().to_string_lossy().starts_with("begun.main."))
            .count()
    };
    assert_eq!((begun(1), begun(2)), (0, 1));
}

#[test]
fn a_closed_attempt_does_not_run() {
    let node = Node::new();
    let script = chained(&node, &["touch", node.path("ran").as_ref()]);
    ended(&node, 5 * MINUTE, "TIMEOUT", None);
    symlink("no-owner", node.file("state/2/run")).unwrap();
    assert_eq!(next(&node, &script).status.code(), Some(120));
    assert!(!node.has("ran"));
}

#[test]
fn the_wait_in_the_queue_is_no_run_time() {
    let node = Node::new();
    let script = chained(&node, &["true"]);
    ended(&node, 60 * MINUTE, "TIMEOUT", None);
    told(&node, "TIMEOUT", now() - 60 * MINUTE + 9);
    assert_eq!(next(&node, &script).status.code(), Some(113), "it ran nine seconds: the service counts that");
    told(&node, "TIMEOUT", now() - 55 * MINUTE);
    assert_eq!(next(&node, &script).status.code(), Some(0));
    let used: u64 = node.read("state/2/used").trim().parse().unwrap();
    assert!((398..=402).contains(&used), "100 s before, 300 s in attempt 1: {used}");
}

#[test]
fn the_time_of_all_attempts_is_bounded() {
    let node = Node::new();
    let mut script = chained(&node, &["sleep", "600"]);
    // Attempt 1 has used its whole time limit of ten minutes: a minute more is a difference of clocks.
    ended(&node, 60 * MINUTE, "TIMEOUT", None);
    told(&node, "TIMEOUT", now() - 49 * MINUTE);
    let most = |script: &mut BatchScript, seconds| script.chain.as_mut().unwrap().most_seconds = seconds;
    most(&mut script, 100 + 600 + 9);
    assert_eq!(next(&node, &script).status.code(), Some(113), "less than ten seconds are left");
    // Its own time limit is what is left. The rest of the ten seconds is spent before.
    most(&mut script, 100 + 600 + 10);
    script.soft_timeout = RunTime::from_seconds(300);
    fs::write(node.file("told"), "JobId=77 JobName=job-1-r2 UserId=u JobState=RUNNING Reason=None\n")
        .unwrap();
    fs::write(node.file("accounted"), format!("job-1|TIMEOUT|{}\n", now() - 49 * MINUTE)).unwrap();
    let output = next(&node, &script);
    assert_eq!(output.status.code(), Some(124), "{}", stderr(&output));
    assert!(stderr(&output).contains("its own time limit of 10 s"), "{}", stderr(&output));
    assert_eq!(node.read("state/2/used"), "700\n");
    assert!(!node.has("sbatch.args"), "no time is left for a third one");
}
