//! Why a run failed, beside how it ended.

use remote::{LogErrors, LogLine};
use test_case::test_case;

use super::*;
use crate::job::failure::{Failure, FailureCategory};

const CHAIN: &str = "[rank1]: RuntimeError: the queue is empty\n\
    [rank0]: torch.distributed.DistBackendError: NCCL error in: x.cpp:1, remote process exited or there was a network error\n";

fn errors(text: &str) -> Vec<LogErrors> {
    let mut offset = 100;
    let lines = text.split_inclusive('\n').map(|line| {
        let at = offset;
        offset += line.len() as u64;
        LogLine { offset: at, text: line.trim_end().to_owned(), is_match: true }
    });
    vec![LogErrors { log: "main.err".to_owned(), lines: lines.collect(), has_gaps: false }]
}

/// The job after its attempt on these nodes, and why that failed.
fn concluded(state: SlurmState, nodes: &str, text: &str) -> (Job, Option<Failure>) {
    let code = u8::from(state != SlurmState::Completed);
    let mut job = Case { state: Some(state), ..Case::default() }.job();
    job.run.nodes = Some(nodes.to_owned());
    job.run.exit = Some(ExitCode { code, signal: 0 });
    let exit = ExitRecord { slurm_id: SlurmJobId::new(7).unwrap(), restart: 0, code, at: 0 };
    let markers = Markers { exit: Some(exit), started: Some(started()), ..Markers::default() };
    let errors = errors(text);
    let found = Findings { markers: &markers, errors: &errors, err_tail: b"the end\n", ..NOTHING };
    let job = match conclude(&job, &found, &Graces::default(), T0 + TimeDelta::minutes(9)) {
        Ending::Ended(job) | Ending::Retry { job, .. } => job,
        other => panic!("{other:?}"),
    };
    let failure = job.run.failure.clone();
    (job, failure)
}

#[test]
fn a_failure_has_the_line_that_shows_its_cause_and_the_message_quotes_it() {
    let (job, failure) = concluded(SlurmState::Failed, "node[01-02]", CHAIN);
    let failure = failure.unwrap();
    assert_eq!((failure.rule.as_str(), failure.category), ("exception", FailureCategory::Code));
    assert_eq!((failure.rank, failure.node), (Some(1), None), "two nodes, and the line names none");
    assert_eq!(failure.line.unwrap().offset, 100);
    assert_eq!(failure.followed[0].rule, "peer-closed");
    let first = "The first error (main.err at byte 100, rank 1): [rank1]: RuntimeError: the queue is empty\nLast lines of main.err:\nthe end";
    assert!(job.message.ends_with(first), "{}", job.message);
}

#[test]
fn the_only_node_of_a_job_is_that_of_its_failure() {
    let (_, failure) = concluded(SlurmState::Failed, "node07", CHAIN);
    assert_eq!(failure.unwrap().node, Some("node07".parse().unwrap()));
}

#[test]
fn a_job_that_succeeded_has_no_failure_whatever_its_logs_say() {
    let (job, failure) = concluded(SlurmState::Completed, "node01", CHAIN);
    assert_eq!((job.status, failure), (Status::Done, None));
}

/// The exceptions of the ranks on the other nodes follow from the end of the one.
#[test]
fn what_slurm_proves_comes_before_what_the_logs_show() {
    let (_, failure) = concluded(SlurmState::NodeFail, "node01", CHAIN);
    let failure = failure.unwrap();
    assert_eq!((failure.rule.as_str(), failure.category), ("node_fail", FailureCategory::Slurm));
    assert_eq!((failure.line, failure.node), (None, Some("node01".parse().unwrap())));
    assert_eq!(failure.followed[0].rule, "exception");
}

#[test_case(SlurmState::Failed, "", "unknown", FailureCategory::Unknown; "nothing shows why")]
#[test_case(SlurmState::Failed, "srun: error: node01: task 0: Exited with exit code 1\n", "unknown", FailureCategory::Unknown; "only consequences")]
#[test_case(SlurmState::Timeout, "", "time-limit", FailureCategory::TimeLimit; "a time limit")]
#[test_case(SlurmState::Timeout, CHAIN, "exception", FailureCategory::Code; "a hang after an error")]
#[test_case(SlurmState::OutOfMemory, "", "out_of_memory", FailureCategory::HostMemory; "Slurm's own limit")]
#[test_case(SlurmState::OutOfMemory, "slurmstepd: error: Detected 1 oom_kill event in StepId=7.0. Some of the step tasks have been OOM Killed.\n", "memory-limit", FailureCategory::HostMemory; "the same with its line")]
fn a_failure_is_explained_by(state: SlurmState, log: &str, rule: &str, category: FailureCategory) {
    let (_, failure) = concluded(state, "node01", log);
    let failure = failure.unwrap();
    assert_eq!((failure.rule.as_str(), failure.category), (rule, category));
    assert!(!failure.advice.is_empty());
}

/// Torchrun names the host in full, and hostile text names anything.
#[test_case("node02.cluster.example.org", Some("node02"); "a full name")]
#[test_case("node09", None; "another node")]
fn only_a_node_of_the_run_is_blamed(host: &str, node: Option<&str>) {
    let log = format!(
        "ValueError: x\n  time      : 2024\n  host      : {host}\n  rank      : 5 (local_rank: 1)\n  exitcode  : 1 (pid: 7)\n"
    );
    let (_, failure) = concluded(SlurmState::Failed, "node[01-02]", &log);
    let failure = failure.unwrap();
    assert_eq!(failure.rank, Some(5));
    assert_eq!(failure.node.as_ref().map(slurm::NodeName::as_str), node);
}
