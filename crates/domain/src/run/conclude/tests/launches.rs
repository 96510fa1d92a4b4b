//! Jobs of which Slurm says that it could not start them.

use super::*;

/// How a job ends that Slurm could not start, whose accounting says `told` and whose script has left `marked`.
fn not_launched(desired: DesiredState, told: Option<u8>, marked: Option<u8>) -> Ending {
    let mut job = Case { state: Some(SlurmState::LaunchFailed), desired, ..Case::default() }.job();
    job.run.exit = told.map(|code| ExitCode { code, signal: 0 });
    let exit =
        marked.map(|code| ExitRecord { slurm_id: SlurmJobId::new(7).unwrap(), restart: 0, code, at: 0 });
    let started = marked.map(|_| started());
    let markers = Markers { exit, started, ..NO_MARKERS };
    conclude(&job, &Findings { markers: &markers, ..NOTHING }, &Graces::default(), T0)
}

#[test]
fn what_could_not_be_started_and_is_not_wanted_any_more_is_canceled() {
    for wanted in [DesiredState::Cancel, DesiredState::Delete] {
        let canceled = |told, marked| {
            let Ending::Ended(job) = not_launched(wanted, told, marked) else { panic!("{wanted:?}") };
            (job.status, job.message)
        };
        assert_eq!(canceled(None, None), (Status::Canceled, "Canceled.".to_owned()));
        assert_eq!(canceled(None, Some(143)).0, Status::Canceled, "it was ended as its owner wanted");
        assert_eq!(canceled(None, Some(3)).0, Status::Error, "it had failed before");
        assert_eq!(canceled(None, Some(0)).0, Status::Done, "it had ended well before");
    }
}

#[test]
fn what_could_not_be_started_is_paused_if_that_was_wanted_though_it_may_not_be_sent_again() {
    let mut job =
        Case { state: Some(SlurmState::LaunchFailed), desired: DesiredState::Pause, ..Case::default() }.job();
    job.run.exit = None;
    job.spec.max_retries = 0;
    let ending = conclude(&job, &NOTHING, &Graces::default(), T0);
    assert!(matches!(ending, Ending::Paused(_)), "{ending:?}");
}

#[test]
fn of_what_could_not_be_started_only_its_own_mark_says_how_it_ended() {
    for told in [None, Some(0), Some(1)] {
        let again = not_launched(DesiredState::Run, told, None);
        let Ending::Retry { job, .. } = again else { panic!("{told:?}: {again:?}") };
        assert_eq!(job.run.exit, None, "it has run nothing");
        let canceled = not_launched(DesiredState::Cancel, told, None);
        assert!(matches!(&canceled, Ending::Ended(job) if job.status == Status::Canceled), "{canceled:?}");
        let ended = not_launched(DesiredState::Run, told, Some(143));
        assert!(matches!(ended, Ending::Retry { .. }), "Slurm has ended it: {ended:?}");
        let done = not_launched(DesiredState::Run, told, Some(0));
        assert!(matches!(&done, Ending::Ended(job) if job.status == Status::Done), "{done:?}");
        let failed = not_launched(DesiredState::Run, told, Some(3));
        assert!(matches!(&failed, Ending::Ended(job) if job.status == Status::Error), "{failed:?}");
    }
}

#[test]
fn what_has_begun_before_it_could_not_be_started_is_waited_for() {
    let job = Case { state: Some(SlurmState::LaunchFailed), ..Case::default() }.job();
    let markers = Markers { started: Some(started()), ..NO_MARKERS };
    let ending = |markers, minutes| {
        let found = Findings { markers, ..NOTHING };
        conclude(&job, &found, &Graces::default(), T0 + TimeDelta::minutes(minutes))
    };
    assert!(matches!(ending(&markers, 0), Ending::Wait { .. }), "it may have ended well");
    assert!(matches!(ending(&markers, 4), Ending::Wait { .. }), "it may be at it, and Slurm has not noticed");
    assert!(matches!(ending(&markers, 5), Ending::Retry { .. }));
    assert!(matches!(ending(&NO_MARKERS, 0), Ending::Retry { .. }), "it has not begun");
}
