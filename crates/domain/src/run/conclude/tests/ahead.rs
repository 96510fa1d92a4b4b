use test_case::test_case;

use super::{
    restarts::{ended, policy},
    runs, *,
};
use crate::{
    fixtures::absorb,
    image::{ImageRef, LaunchImage},
    request::restart::Restart,
};

fn queued_ahead() -> Restart {
    Restart { prequeue: true, delay_seconds: None, ..policy() }
}

fn job_after(ending: Ending) -> Job {
    match ending {
        Ending::Ended(job) | Ending::Paused(job) | Ending::Retry { job, .. } => job,
        Ending::Adopt(_) | Ending::Wait { .. } => panic!("{ending:?}"),
    }
}

fn next(job: &Job) -> u32 {
    job.next_attempt().get()
}

#[test_case(SlurmState::Timeout, None)]
#[test_case(SlurmState::Failed, Some(75))]
fn after_a_planned_end_the_next_attempt_is_the_one_that_was_queued_ahead(
    state: SlurmState,
    code: Option<u8>,
) {
    let job = job_after(ended(state, code, &queued_ahead(), DesiredState::Run));
    assert!(!job.closes_ahead() && job.may_be_staged(), "its files are that one's, too");
    assert_eq!((job.phase, next(&job)), (Phase::RetryWait, 2));
    assert_eq!(job.key_ahead().unwrap().name.as_str(), format!("tao-job-{}-r2", job.id));
    assert!(job.state_ahead().unwrap().as_str().ends_with(&format!("/state/{}/2", job.id)));
    // Its owner cancels it meanwhile.
    let canceled = Job { desired: DesiredState::Cancel, ..job }.canceled_locally(T0);
    assert!(canceled.closes_ahead());
    assert_eq!(next(&canceled), 3);
}

#[test]
fn an_adopted_attempt_has_the_exclusions_of_the_script_that_it_runs() {
    let job = job_after(ended(SlurmState::Timeout, None, &queued_ahead(), DesiredState::Run));
    let mut queued_by = job.attempt.clone().unwrap();
    queued_by.excluded = vec!["node01".parse().unwrap()];
    let mut job = job.in_attempt_ahead(T0).unwrap();
    let attempt = job.attempt.as_mut().unwrap();
    attempt.excluded = vec!["node02".parse().unwrap()];
    attempt.slurm_id = SlurmJobId::new(9);
    job.takes_over(&queued_by);
    assert_eq!(job.attempt.as_ref().unwrap().excluded, queued_by.excluded);
    assert!(job.message.contains("Slurm job 9, which was queued ahead"), "{}", job.message);
}

#[test_case(SlurmState::Completed, Some(0), DesiredState::Run, Phase::Ended; "a success")]
#[test_case(SlurmState::Failed, Some(1), DesiredState::Run, Phase::Ended; "a failure of its own")]
#[test_case(SlurmState::Cancelled, None, DesiredState::Cancel, Phase::Ended; "a cancellation")]
#[test_case(SlurmState::Cancelled, None, DesiredState::Pause, Phase::Paused; "a pause")]
fn after_any_other_end_it_is_closed(
    state: SlurmState,
    code: Option<u8>,
    desired: DesiredState,
    phase: Phase,
) {
    let job = job_after(ended(state, code, &queued_ahead(), desired));
    assert_eq!((job.phase, job.closes_ahead(), next(&job)), (phase, true, 3));
    let other = job_after(ended(SlurmState::Failed, Some(1), &policy(), DesiredState::Run));
    assert!(!other.closes_ahead() && other.key_ahead().is_none(), "its attempts queue none");
}

#[test]
fn a_retry_after_a_failure_has_a_number_of_its_own() {
    let mut restart = queued_ahead();
    restart.on.insert(crate::request::restart::RestartCause::NodeFailure);
    let job = job_after(ended(SlurmState::NodeFail, None, &restart, DesiredState::Run));
    assert_eq!((job.phase, job.closes_ahead(), next(&job)), (Phase::RetryWait, true, 3));
}

#[test]
fn an_attempt_that_had_nothing_to_do_is_followed_by_another_one() {
    let left = |desired, run_claim| {
        let mut job = Case { state: Some(SlurmState::Failed), desired, ..Case::default() }.job();
        job.spec.restart = queued_ahead();
        job.run.exit = Some(ExitCode { code: remote::script::EXIT_NOT_NEEDED, signal: 0 });
        let markers = Markers { run_claim, ..NO_MARKERS };
        conclude(&job, &Findings { markers: &markers, ..NOTHING }, &Graces::default(), T0)
    };
    let Ending::Retry { job, due_at } = left(DesiredState::Run, None) else { panic!() };
    assert_eq!((due_at, next(&job), job.failures.len()), (T0, 2, 0));
    assert!(!job.closes_ahead(), "it has queued none");
    assert_eq!(job_after(left(DesiredState::Pause, None)).phase, Phase::Paused);
    assert_eq!(job_after(left(DesiredState::Cancel, None)).status, Status::Canceled);
    // A program may have that code itself.
    assert!(!matches!(left(DesiredState::Run, SlurmJobId::new(7)), Ending::Retry { .. }));
}

#[test_case(DesiredState::Run, Status::Pending)]
#[test_case(DesiredState::Cancel, Status::Canceling)]
fn a_job_goes_on_with_an_attempt_that_has_begun(desired: DesiredState, status: Status) {
    let mut before = Case { state: Some(SlurmState::Timeout), desired, ..Case::default() }.job();
    before.spec.restart = queued_ahead();
    let job = before.gone_on(SlurmJobId::new(8).unwrap(), T0);
    assert_eq!((job.phase, job.status, next(&job), job.closes_ahead()), (Phase::RetryWait, status, 2, false));
    let ahead = job.in_attempt_ahead(T0).unwrap();
    let attempt = ahead.attempt.as_ref().unwrap();
    assert_eq!((attempt.no.get(), attempt.slurm_id, attempt.fence.newest), (2, None, 1));
    assert!(attempt.is_open());
}

#[test]
fn an_attempt_that_may_be_closed_already_is_not_kept() {
    let case = Case { state: Some(SlurmState::Timeout), ..Case::default() };
    let mut job = case.job();
    job.spec.restart = queued_ahead();
    job.run.started_at = Some(T0 - TimeDelta::minutes(1));
    let markers = Markers { started: Some(started()), run_claim: SlurmJobId::new(7), ..Markers::default() };
    let after = |job: &Job| {
        let now = T0 + TimeDelta::minutes(10);
        job_after(conclude(job, &Findings { markers: &markers, ..NOTHING }, &Graces::default(), now))
    };
    let kept = after(&job);
    assert_eq!((kept.phase, kept.closes_ahead(), next(&kept)), (Phase::RetryWait, false, 2));
    // The answer to an earlier try was lost.
    let closed = after(&job.closing_ahead());
    assert_eq!((closed.phase, closed.closes_ahead(), next(&closed)), (Phase::RetryWait, true, 3));
}

#[test]
fn the_images_of_an_attempt_that_was_queued_ahead_are_decided() {
    let mut job = job_after(ended(SlurmState::Timeout, None, &queued_ahead(), DesiredState::Run));
    assert_eq!(job.images_ahead(), None, "it has none");
    let image = "registry.example/a:1".parse::<ImageRef>().unwrap();
    let image = LaunchImage { requested: image.clone(), image, note: None };
    job.attempt.as_mut().unwrap().images = vec![image.clone()];
    assert_eq!(job.images_ahead(), Some(&[image][..]));
    assert_eq!(job.closing_ahead().images_ahead(), None);
}

/// The end of an attempt that was queued ahead and exited with 0, so many seconds after the attempt before had read FAILURE.
fn ended_ahead(starts_after: i64) -> Status {
    let case = Case { tao: false, state: Some(SlurmState::Timeout), code: None, ..Case::default() };
    let mut job = case.job();
    job.spec.restart = queued_ahead();
    absorb(&mut job, &[runs::of_run(0, "{\"status\":\"FAILURE\",\"message\":\"no data\"}\n")], T0);
    let mut job = job.in_attempt_ahead(T0).unwrap();
    job.attempt.as_mut().unwrap().slurm_id = SlurmJobId::new(8);
    job.phase = Phase::Finishing;
    job.run.state = Some(SlurmState::Completed);
    job.run.exit = Some(ExitCode { code: 0, signal: 0 });
    job.run.started_at = Some(T0 + TimeDelta::seconds(starts_after));
    let markers = Markers::default();
    let found = Findings { markers: &markers, ..NOTHING };
    match conclude(&job, &found, &Graces::default(), T0 + TimeDelta::minutes(9)) {
        Ending::Ended(job) => job.status,
        other => panic!("{other:?}"),
    }
}

#[test]
fn what_an_attempt_says_while_the_service_is_away_is_its_own_although_the_one_before_has_read_it() {
    assert_eq!(ended_ahead(-30), Status::Error);
    assert_eq!(ended_ahead(30), Status::Done, "the attempt before has said it");
}
