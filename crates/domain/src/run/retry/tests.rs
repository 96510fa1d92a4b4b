use chrono::DateTime;
use slurm::ExitCode;
use test_case::test_case;

use super::*;
use crate::{
    fixtures::submitted_job,
    job::{attempt::PastFailure, identity::JobId},
    request::restart::Restart,
};

const T0: Timestamp = DateTime::UNIX_EPOCH;

fn broken() -> Diagnosis {
    Diagnosis {
        cause: Cause::Infrastructure,
        end: RestartCause::NodeFailure,
        signature: "node_fail".to_owned(),
        why: "a node of the job failed".to_owned(),
        line: None,
        nodes: vec!["node01".parse().unwrap()],
    }
}

fn failed_on(names: &[&str]) -> Job {
    let mut job = submitted_job();
    for (no, name) in (1..).zip(names) {
        job.failures.push(PastFailure {
            attempt: no,
            task: 0,
            slurm_id: None,
            signature: "node_fail".to_owned(),
            nodes: vec![name.parse().unwrap()],
            at: T0,
            requeued: false,
            allowed_again: false,
        });
    }
    job
}

fn decide(job: &Job, found: Option<&Diagnosis>) -> RetryDecision {
    decide_retry(job, found, &RetryTerms::default(), None, T0)
}

#[test]
fn a_failed_node_is_excluded_and_named() {
    let why = match decide(&failed_on(&["node01"]), Some(&broken())) {
        RetryDecision::Yes { why, .. } => why,
        other @ RetryDecision::No { .. } => panic!("{other:?}"),
    };
    assert_eq!(why, "Retrying in 12 s (retry 1 of 10), excluding node01: a node of the job failed.");
}

#[test]
fn a_failed_node_that_cannot_be_spared_is_not_excluded() {
    let decision =
        decide_retry(&failed_on(&["node01"]), Some(&broken()), &RetryTerms::default(), Some(0), T0);
    assert!(
        matches!(decision, RetryDecision::Yes { why, .. } if why.starts_with("Retrying in 12 s (retry 1 of 10): "))
    );
}

#[test]
fn a_fault_of_the_job_is_not_retried() {
    let found = Diagnosis { cause: Cause::User, why: "its batch is too large".to_owned(), ..broken() };
    let why = "Not retried: its batch is too large.".to_owned();
    assert_eq!(decide(&failed_on(&[]), Some(&found)), RetryDecision::No { why });
}

#[test]
fn an_unknown_failure_is_not_retried() {
    assert!(matches!(decide(&failed_on(&[]), None), RetryDecision::No { .. }));
}

#[test]
fn the_same_fault_on_three_nodes_ends_the_retries() {
    assert!(matches!(decide(&failed_on(&["a", "b", "b"]), Some(&broken())), RetryDecision::Yes { .. }));
    let stopped = decide(&failed_on(&["a", "b", "c"]), Some(&broken()));
    assert!(matches!(stopped, RetryDecision::No { why } if why.contains("3 different nodes (a, b, c)")));
}

#[test]
fn a_cached_file_that_never_works_ends_the_retries() {
    let found = Diagnosis {
        cause: Cause::CachedFile,
        why: "the file of the image is damaged".to_owned(),
        nodes: Vec::new(),
        ..broken()
    };
    let decision = decide(&failed_on(&["a", "a"]), Some(&found));
    assert!(
        matches!(&decision, RetryDecision::Yes { why, .. } if why.ends_with("is damaged; the cache is checked first.")),
        "{decision:?}"
    );
    let stopped = decide(&failed_on(&["a", "a", "a"]), Some(&found));
    assert!(matches!(stopped, RetryDecision::No { why } if why.contains("could not be used 3 times")));
}

#[test]
fn different_faults_on_three_nodes_do_not_end_the_retries() {
    let mut job = failed_on(&["a", "b", "c"]);
    "xid".clone_into(&mut job.failures[0].signature);
    assert!(matches!(decide(&job, Some(&broken())), RetryDecision::Yes { .. }));
}

#[test]
fn the_budget_ends_the_retries() {
    let mut job = failed_on(&["a", "a"]);
    job.spec.max_retries = 1;
    assert!(
        matches!(decide(&job, Some(&broken())), RetryDecision::No { why } if why.contains("all 1 retries"))
    );
}

#[test]
fn waits_double_up_to_a_bound_and_differ_between_jobs() {
    let terms = RetryTerms::default();
    let mut job = submitted_job();
    let waits = [1, 2, 3, 10].map(|n| wait(&job, n, &terms).num_seconds());
    assert_eq!(waits, [12, 24, 48, 480]);
    job.spec.restart.delay_seconds = Some(1000);
    assert_eq!(
        wait(&job, 3, &terms).num_seconds(),
        801,
        "its own wait, longer than the longest of the service"
    );
    job.spec.restart.delay_seconds = None;
    job.id = JobId::new(uuid::Uuid::from_u128(400));
    assert_eq!(wait(&job, 1, &terms).num_seconds(), 18);
}

/// A run of so many seconds, under a policy for all planned ends and code 75.
fn ran(seconds: i64) -> Job {
    let mut job = submitted_job();
    job.spec.restart = Restart {
        on: [RestartCause::Timeout, RestartCause::Preempted].into(),
        exit_codes: [75].into(),
        max_total_seconds: Some(3600),
        delay_seconds: None,
        prequeue: false,
    };
    (job.run.started_at, job.run.ended_at) = (Some(T0), Some(T0 + TimeDelta::seconds(seconds)));
    job
}

#[test_case(Some(SlurmState::Timeout), None, false => true; "Slurm's time limit")]
#[test_case(Some(SlurmState::Preempted), None, false => true; "preempted")]
#[test_case(Some(SlurmState::Failed), Some(75), false => true; "a code that it lists")]
#[test_case(None, Some(75), false => true; "that code, of a job that Slurm lost")]
#[test_case(Some(SlurmState::Failed), Some(1), false => false; "another code")]
#[test_case(Some(SlurmState::Failed), Some(EXIT_LIMIT), true => true; "its own time limit")]
#[test_case(Some(SlurmState::Failed), Some(EXIT_LIMIT), false => false; "a program that returns that code")]
#[test_case(Some(SlurmState::Cancelled), Some(75), false => false; "canceled")]
#[test_case(Some(SlurmState::OutOfMemory), Some(75), false => false; "out of memory")]
fn a_job_goes_on_after_the_ends_that_its_policy_lists(
    state: Option<SlurmState>,
    code: Option<u8>,
    limited: bool,
) -> bool {
    let mut job = ran(60);
    (job.run.state, job.run.exit) = (state, code.map(|code| ExitCode { code, signal: 0 }));
    let markers = Markers { limited, ..Markers::default() };
    let planned = planned_end(&job, &markers);
    job.spec.restart = Restart::default();
    assert_eq!(planned_end(&job, &markers), None, "the default policy is for the infrastructure");
    planned.is_some()
}

fn end(why: &str, is_short: bool) -> PlannedEnd {
    PlannedEnd { why: why.to_owned(), by_code: false, is_short }
}

#[test_case(SlurmState::Timeout, 9 => true; "less than ten seconds before its time limit")]
#[test_case(SlurmState::Timeout, 10 => false; "ten seconds before its time limit")]
#[test_case(SlurmState::Failed, 59 => true; "less than a minute before its exit code")]
#[test_case(SlurmState::Failed, 60 => false; "a minute before its exit code")]
fn a_short_attempt_did_nothing(state: SlurmState, seconds: i64) -> bool {
    let mut job = ran(seconds);
    (job.run.state, job.run.exit) = (Some(state), Some(ExitCode { code: 75, signal: 0 }));
    job.run.ran_before = 1000;
    planned_end(&job, &Markers::default()).unwrap().is_short
}

#[test]
fn a_failure_after_which_slurm_requeued_the_job_uses_no_retry() {
    let mut job = failed_on(&["a", "b"]);
    job.spec.max_retries = 1;
    job.failures[0].requeued = true;
    assert!(matches!(decide(&job, Some(&broken())), RetryDecision::Yes { .. }));
    job.failures[0].requeued = false;
    assert!(matches!(decide(&job, Some(&broken())), RetryDecision::No { .. }));
}

#[test]
fn a_run_that_reported_a_failure_was_not_interrupted() {
    let mut job = ran(60);
    job.run.state = Some(SlurmState::Timeout);
    job.run.kill_reason = Some("It hangs.".to_owned());
    assert_eq!(planned_end(&job, &Markers::default()), None);
}

#[test]
fn a_job_goes_on_at_once_until_its_total_time_is_used() {
    let terms = RetryTerms::default();
    let mut job = ran(1800);
    let RetryDecision::Yes { wait, why } =
        decide_restart(&job, &end("it reached its time limit", false), &terms)
    else {
        panic!()
    };
    assert_eq!(why, "Restarting: it reached its time limit; 30 min of its total time are left.");
    assert!(wait.is_zero());
    job.run.ran_before = 1795;
    let why = "Not restarted: it has run for all 60 min of `restart.max_total_hours`.".to_owned();
    assert_eq!(decide_restart(&job, &end("", false), &terms), RetryDecision::No { why: why.clone() });
    assert_eq!(
        decide(&job, Some(&Diagnosis { end: RestartCause::Timeout, ..broken() })),
        RetryDecision::No { why }
    );
}

#[test]
fn runs_that_do_nothing_do_not_follow_each_other_for_ever() {
    let mut job = ran(9);
    job.failures = failed_on(&["a"]).failures;
    let first = decide_restart(&job, &end("it exited with code 75", true), &RetryTerms::default());
    assert!(matches!(first, RetryDecision::Yes { wait, .. } if wait.num_seconds() == 12), "{first:?}");
    job.spec.max_retries = 0;
    let last = decide_restart(&job, &end("", true), &RetryTerms::default());
    assert!(
        matches!(&last, RetryDecision::No { why } if why.contains("after failures and short attempts")),
        "{last:?}"
    );
}

#[test]
fn a_failure_that_the_policy_does_not_list_ends_the_job() {
    let stopped = decide(&ran(60), Some(&broken()));
    assert!(
        matches!(stopped, RetryDecision::No { why } if why.contains("`restart.on` does not list `node_failure`, and a node of the job failed"))
    );
}
