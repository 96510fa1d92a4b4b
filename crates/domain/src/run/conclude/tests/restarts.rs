use test_case::test_case;

use super::*;
use crate::request::restart::{Restart, RestartCause};

/// A command that ran for a minute, under a policy.
pub(super) fn ended(state: SlurmState, code: Option<u8>, restart: &Restart, desired: DesiredState) -> Ending {
    let case = Case { state: Some(state), code, desired, ..Case::default() };
    let mut job = case.job();
    job.spec.restart = restart.clone();
    job.run.started_at = Some(T0 - TimeDelta::minutes(1));
    let exit = code.map(|code| ExitRecord { slurm_id: SlurmJobId::new(7).unwrap(), restart: 0, code, at: 0 });
    let markers =
        Markers { exit, started: Some(started()), run_claim: SlurmJobId::new(7), ..Markers::default() };
    conclude(
        &job,
        &Findings { markers: &markers, ..NOTHING },
        &Graces::default(),
        T0 + TimeDelta::minutes(10),
    )
}

pub(super) fn policy() -> Restart {
    Restart {
        on: [RestartCause::Timeout, RestartCause::Preempted].into(),
        exit_codes: [75].into(),
        max_total_seconds: Some(90),
        delay_seconds: Some(5),
        prequeue: false,
    }
}

#[test_case(SlurmState::Timeout, None, "it reached its time limit")]
#[test_case(SlurmState::Preempted, None, "a job of higher priority took its nodes")]
#[test_case(SlurmState::Failed, Some(75), "it exited with code 75")]
fn a_job_goes_on_in_another_attempt(state: SlurmState, code: Option<u8>, why: &str) {
    let Ending::Retry { job, due_at } = ended(state, code, &policy(), DesiredState::Run) else { panic!() };
    assert_eq!(due_at, T0 + TimeDelta::minutes(10) + TimeDelta::seconds(5));
    let attempt = job.attempt.as_ref().unwrap();
    let verdict = attempt.verdict.as_ref().unwrap();
    assert_eq!(verdict.outcome, Outcome::Retried);
    let expected = format!("Restarting in 5 s: {why}; 30 s of its total time are left.");
    assert_eq!((verdict.why.as_str(), job.failures.len()), (expected.as_str(), 0));
    let mut job = Job { started_at: Some(T0), ..job };
    let next = job.new_attempt("/lustre/tao".parse().unwrap(), T0).unwrap();
    job.begin_attempt(next);
    assert_eq!(job.run.ran_before, 60, "the next attempt has half a minute");
}

#[test]
fn a_job_without_such_a_policy_ends() {
    let ending = ended(SlurmState::Timeout, None, &Restart::default(), DesiredState::Run);
    let Ending::Ended(job) = ending else { panic!("{ending:?}") };
    assert_eq!(job.status, Status::Error);
    let ending = ended(SlurmState::Failed, Some(1), &policy(), DesiredState::Run);
    assert!(matches!(ending, Ending::Ended(job) if job.status == Status::Error), "its own failure");
}

#[test]
fn an_exit_code_does_not_hide_a_failure_of_the_infrastructure() {
    let mut restart = policy();
    let xid = "NVRM: Xid (PCI:0000:3b:00): 79, GPU has fallen off the bus.";
    let ended = |restart: &Restart| {
        let case = Case { state: Some(SlurmState::Failed), code: Some(75), err: xid, ..Case::default() };
        let mut job = case.job();
        (job.run.nodes, job.spec.restart) = (Some("node01".to_owned()), restart.clone());
        job.run.started_at = Some(T0 - TimeDelta::minutes(1));
        let exit = ExitRecord { slurm_id: SlurmJobId::new(7).unwrap(), restart: 0, code: 75, at: 0 };
        let markers = Markers { exit: Some(exit), run_claim: SlurmJobId::new(7), ..Markers::default() };
        let found = Findings { markers: &markers, err_tail: xid.as_bytes(), ..NOTHING };
        match conclude(&job, &found, &Graces::default(), T0 + TimeDelta::minutes(10)) {
            Ending::Retry { job, .. } => job.failures,
            other => panic!("{other:?}"),
        }
    };
    assert_eq!(ended(&restart), [], "the policy does not retry it, and lists the code");
    restart.on.insert(RestartCause::Infrastructure);
    let failures = ended(&restart);
    assert_eq!((failures[0].signature.as_str(), failures[0].nodes[0].as_str()), ("gpu-lost", "node01"));
}

#[test]
fn the_time_of_a_job_that_its_owner_retries_starts_anew() {
    let Ending::Retry { mut job, .. } = ended(SlurmState::Timeout, None, &policy(), DesiredState::Run) else {
        panic!()
    };
    // Canceled while it waits for its next attempt, and retried, as the store does it.
    job.desired = DesiredState::Cancel;
    let mut job = job.canceled_locally(T0);
    (job.desired, job.phase, job.started_at) = (DesiredState::Run, Phase::Queued, None);
    let next = job.new_attempt("/lustre/tao".parse().unwrap(), T0).unwrap();
    job.begin_attempt(next);
    assert_eq!(job.run.ran_before, 0);
}

#[test]
fn a_job_whose_owner_does_not_want_it_does_not_go_on() {
    let ending = ended(SlurmState::Timeout, None, &policy(), DesiredState::Pause);
    assert!(matches!(ending, Ending::Paused(_)), "{ending:?}");
    let ending = ended(SlurmState::Preempted, None, &policy(), DesiredState::Cancel);
    assert!(matches!(&ending, Ending::Ended(job) if job.status == Status::Canceled), "{ending:?}");
}

#[test]
fn a_job_that_has_used_its_time_ends_and_says_so() {
    let restart = Restart { max_total_seconds: Some(61), ..policy() };
    let Ending::Ended(job) = ended(SlurmState::Timeout, None, &restart, DesiredState::Run) else { panic!() };
    assert_eq!(job.status, Status::Error);
    assert!(job.message.contains("The job reached its Slurm time limit"), "{}", job.message);
    assert!(
        job.message.contains("Not restarted: it has run for all 61 s of `restart.max_total_hours`."),
        "{}",
        job.message
    );
}
