//! Jobs that end at their own limit, or from outside.

use test_case::test_case;

use super::*;

/// How a job with these markers ends.
fn ended_with(case: &Case, markers: &Markers) -> Job {
    let found = Findings { markers, err_tail: b"the last line\n", ..NOTHING };
    match conclude(&case.job(), &found, &Graces::default(), T0) {
        Ending::Ended(job) => job,
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_job_that_reached_its_own_limit_for_the_last_time_says_so() {
    let exit = ExitRecord { slurm_id: SlurmJobId::new(7).unwrap(), restart: 2, code: 124, at: 0 };
    let markers = Markers { exit: Some(exit), limited: true, ..Markers::default() };
    let case = Case { state: Some(SlurmState::Failed), code: None, ..Case::default() };
    let job = ended_with(&case, &markers);
    assert_eq!(job.status, Status::Error);
    assert!(job.message.starts_with("The job reached its own time limit"), "{}", job.message);
    let markers = Markers { limited: false, ..markers };
    assert!(ended_with(&case, &markers).message.contains("exited with code 124"));
}

#[test]
fn a_job_that_was_ended_from_outside_may_have_said_how_it_ended() {
    let timeout = Case { state: Some(SlurmState::Timeout), code: None, ..Case::default() };
    let conclude_started = |case: &Case, seconds: i64| {
        let mut job = case.job();
        job.run.started_at = Some(T0);
        let found = Findings { markers: &Markers::default(), ..NOTHING };
        conclude(&job, &found, &Graces::default(), T0 + TimeDelta::seconds(seconds))
    };
    assert!(matches!(conclude_started(&timeout, 0), Ending::Wait { .. }), "its word may be on its way");
    let Ending::Ended(job) = conclude_started(&timeout, 60) else { panic!("it has ended") };
    assert_eq!(job.status, Status::Error);
    let said = Case { word: Some("SUCCESS"), ..timeout };
    let Ending::Ended(job) = conclude_started(&said, 0) else { panic!("nothing is waited for") };
    assert_eq!(job.status, Status::Done);
}

#[test_case("SUCCESS" => Status::Done)]
#[test_case("FAILURE" => Status::Error)]
fn a_job_that_hangs_until_its_own_limit_after_its_final_status_is_not_restarted(
    word: &'static str,
) -> Status {
    let case = Case { word: Some(word), state: Some(SlurmState::Failed), ..Case::default() };
    let mut job = case.job();
    job.spec.restart = super::restarts::policy();
    let exit = ExitRecord {
        slurm_id: SlurmJobId::new(7).unwrap(),
        restart: 0,
        code: remote::script::EXIT_LIMIT,
        at: 0,
    };
    let markers = Markers {
        exit: Some(exit),
        limited: true,
        started: Some(started()),
        run_claim: SlurmJobId::new(7),
        ..Markers::default()
    };
    let found = Findings { markers: &markers, ..NOTHING };
    match conclude(&job, &found, &Graces::default(), T0 + TimeDelta::minutes(10)) {
        Ending::Ended(job) => job.status,
        other => panic!("{other:?}"),
    }
}

#[test_case(Some(SlurmState::Failed), DesiredState::Run => Phase::RetryWait)]
#[test_case(Some(SlurmState::Cancelled), DesiredState::Pause => Phase::Paused; "paused in the same second")]
#[test_case(Some(SlurmState::Cancelled), DesiredState::Cancel => Phase::Ended; "canceled in the same second")]
#[test_case(None, DesiredState::Cancel => Phase::Ended; "canceled, and forgotten by the controller")]
fn what_its_owner_wants_decides_when_a_job_that_goes_on_reaches_its_own_limit(
    state: Option<SlurmState>,
    desired: DesiredState,
) -> Phase {
    let case = Case { state, desired, ..Case::default() };
    let mut job = case.job();
    job.spec.restart = super::restarts::policy();
    job.run.started_at = Some(T0 - TimeDelta::minutes(1));
    let exit = ExitRecord { slurm_id: SlurmJobId::new(7).unwrap(), restart: 0, code: 124, at: 0 };
    let markers = Markers { exit: Some(exit), limited: true, started: Some(started()), ..Markers::default() };
    let found = Findings { markers: &markers, ..NOTHING };
    match conclude(&job, &found, &Graces::default(), T0 + TimeDelta::minutes(10)) {
        Ending::Ended(job) => {
            assert_eq!((job.status, job.message.as_str()), (Status::Canceled, "Canceled."));
            job.phase
        }
        Ending::Paused(job) | Ending::Retry { job, .. } => job.phase,
        other => panic!("{other:?}"),
    }
}

/// As a controller leaves it that was killed just after it had requeued the job: it shows the job as running until its time limit.
#[test]
fn a_job_whose_requeue_slurm_lost_is_retried() {
    const PREEMPTED: &str = "slurmstepd-node01: error: *** JOB 7 ON node01 CANCELLED AT 2026-11-28T07:44:57 DUE TO PREEMPTION ***\n";
    const LIMIT: &str =
        "slurmstepd: error: *** JOB 7 ON node01 CANCELLED AT 2026-11-28T08:44:57 DUE TO TIME LIMIT ***\n";
    let again = Box::leak(format!("{PREEMPTED}step 2\n{LIMIT}").into_boxed_str());
    let ended = |err| Case { state: Some(SlurmState::Timeout), code: None, err, ..Case::default() }.after(60);
    let Ending::Retry { job, .. } = ended(PREEMPTED) else { panic!("{:?}", ended(PREEMPTED)) };
    assert_eq!(job.attempt.unwrap().verdict.unwrap().rule.as_deref(), Some("lost-requeue"));
    // It was requeued, and its next run reached the limit.
    assert!(matches!(ended(again), Ending::Ended(_)), "{:?}", ended(again));
}
