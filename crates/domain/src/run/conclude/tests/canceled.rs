//! Work that was done before its cancellation.

use super::*;

/// A job that Slurm canceled at its owner's request, so many seconds after its script had left this record, with so many requeues.
fn canceled_after(code: u8, seconds: i64, requeues: u32) -> Status {
    let mut job =
        Case { tao: false, state: Some(SlurmState::Cancelled), code: None, ..Case::default() }.job();
    job.desired = DesiredState::Cancel;
    job.run.requeues = requeues;
    job.run.ended_at = Some(T0 + TimeDelta::minutes(5));
    let at = (T0 + TimeDelta::minutes(5) - TimeDelta::seconds(seconds)).timestamp();
    let exit = Some(ExitRecord { slurm_id: SlurmJobId::new(7).unwrap(), restart: 0, code, at });
    let markers = Markers { exit, started: Some(started()), ..Markers::default() };
    let found = Findings { markers: &markers, ..NOTHING };
    match conclude(&job, &found, &Graces::default(), T0 + TimeDelta::minutes(9)) {
        Ending::Ended(job) => job.status,
        other => panic!("{other:?}"),
    }
}

#[test]
fn work_that_was_done_before_the_cancellation_is_done() {
    assert_eq!(canceled_after(0, 31, 0), Status::Done, "a killed controller had forgotten the end");
    assert_eq!(canceled_after(0, 3, 0), Status::Canceled, "it may be the reaction of the program");
    assert_eq!(
        canceled_after(0, 3, 1),
        Status::Done,
        "a killed controller had put it back, and canceled what waited"
    );
    assert_eq!(canceled_after(1, 31, 1), Status::Canceled, "it had failed, and nobody wants it again");
}
