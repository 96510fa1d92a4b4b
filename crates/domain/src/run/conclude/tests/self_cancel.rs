//! A job whose program has called scancel, and that Slurm has canceled.

use remote::SelfCancelMarker;
use test_case::test_case;

use super::*;

/// A job that Slurm has canceled, a while after its program called scancel in the name of a job of Slurm.
fn canceled(desired: DesiredState, id: u32, seconds_after: i64) -> Job {
    let asked = 1_700_000_000;
    let mark = SelfCancelMarker { slurm_id: SlurmJobId::new(id).unwrap(), at: asked };
    let case = Case { state: Some(SlurmState::Cancelled), code: None, desired, ..Case::default() };
    let mut job = case.job();
    let ended = timestamp(Some(asked + seconds_after)).unwrap();
    job.run.ended_at = Some(ended);
    job.finishing_since = Some(ended);
    let markers = Markers { self_canceled: Some(mark), ..Markers::default() };
    let found = Findings { markers: &markers, ..NOTHING };
    match conclude(&job, &found, &Graces::default(), ended + TimeDelta::days(1)) {
        Ending::Ended(job) => job,
        other => panic!("{other:?}"),
    }
}

#[test_case(0; "at once")]
#[test_case(200; "by a controller that was busy")]
#[test_case(-200; "by a clock that is fast")]
fn a_job_that_cancels_itself_has_failed(seconds_after: i64) {
    let job = canceled(DesiredState::Run, 7, seconds_after);
    assert_eq!(job.status, Status::Error);
    assert!(job.message.starts_with("The job canceled itself."), "{}", job.message);
}

#[test]
fn a_job_that_cancels_itself_while_its_owner_cancels_it_is_canceled() {
    assert_eq!(canceled(DesiredState::Cancel, 7, 0).status, Status::Canceled);
}

#[test_case(7, 3600; "which had called scancel for something else before")]
#[test_case(8, 0; "beside another job that has left its mark")]
fn another_user_has_canceled_a_job(id: u32, seconds_after: i64) {
    let job = canceled(DesiredState::Run, id, seconds_after);
    assert_eq!(job.status, Status::Canceled);
    assert!(job.message.contains("not by this service"), "{}", job.message);
}
