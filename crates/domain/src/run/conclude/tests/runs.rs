//! What one run of a job has said, and what another makes of it.

use remote::RunNote;
use test_case::test_case;

use super::*;
use crate::fixtures::absorb;

/// A status file, as it is after a run that began after so many requeues.
pub(super) fn of_run(restart: u32, text: &str) -> StatusChunk {
    StatusChunk {
        key: String::new(),
        path: "/lustre/r/status.json".parse().unwrap(),
        inode: 1,
        size: text.len() as u64,
        written_at: 0,
        note: Some(RunNote { at: i64::from(restart), restart, fresh_from: 0 }),
        start_offset: 0,
        skipped: 0,
        before: Vec::new(),
        bytes: text.as_bytes().to_vec(),
        restarted: false,
        complete: true,
    }
}

/// What is said of a job that was canceled after a run of it had said SUCCESS, which was read after three minutes.
fn freed(started_at: Option<Timestamp>, marked_at: Option<Timestamp>, restart: u32) -> Status {
    let mut job = Case { state: Some(SlurmState::Cancelled), ..Case::default() }.job();
    absorb(&mut job, &[of_run(0, "{\"status\":\"SUCCESS\"}\n")], T0 + TimeDelta::minutes(3));
    job.run.started_at = started_at;
    let started = marked_at.map(|at| StartedMarker {
        slurm_id: SlurmJobId::new(7).unwrap(),
        restart,
        at: at.timestamp(),
        hostname: String::new(),
    });
    let markers = Markers { started, ..Markers::default() };
    let found = Findings { markers: &markers, ..NOTHING };
    match conclude(&job, &found, &Graces::default(), T0 + TimeDelta::minutes(9)) {
        Ending::Ended(job) => job.status,
        other => panic!("{other:?}"),
    }
}

#[test]
fn what_a_run_has_said_says_nothing_of_one_that_never_began() {
    let (first, second) = (T0 + TimeDelta::minutes(1), T0 + TimeDelta::minutes(5));
    assert_eq!(freed(Some(first), Some(first), 0), Status::Done);
    assert_eq!(freed(None, Some(first), 0), Status::Canceled, "Slurm had it wait again");
    assert_eq!(freed(Some(second), Some(first), 0), Status::Canceled, "its script had not begun again");
    assert_eq!(freed(Some(second), Some(second - TimeDelta::seconds(3)), 0), Status::Done, "two clocks");
    assert_eq!(freed(Some(first), None, 0), Status::Done, "the mark is late");
    assert_eq!(freed(Some(first), Some(first), 1), Status::Canceled, "what was read is of the run before");
}

#[test]
fn a_node_whose_clock_is_minutes_slow_takes_no_word_away() {
    let (started_at, slow) = (T0 + TimeDelta::minutes(2), T0 + TimeDelta::seconds(10));
    assert_eq!(freed(Some(started_at), Some(slow), 0), Status::Done, "it was read while that run ran");
}

/// What comes, so many minutes after its end, of a job whose script found its run begun before; `code` is what that run has
/// left as its own.
fn repeated(code: Option<u8>, minutes: i64) -> Ending {
    repeated_of(&Case::default(), code, minutes)
}

fn repeated_of(case: &Case, code: Option<u8>, minutes: i64) -> Ending {
    let mut job = case.job();
    job.run.state = Some(SlurmState::Failed);
    let begun = ExitCode { code: remote::script::EXIT_BEGUN, signal: 0 };
    job.run.exit = Some(begun);
    let exit = code.map(|code| ExitRecord { slurm_id: SlurmJobId::new(7).unwrap(), restart: 0, code, at: 0 });
    let markers = Markers { exit, started: Some(started()), ..Markers::default() };
    let found = Findings { markers: &markers, err_tail: b"ValueError: no", ..NOTHING };
    conclude(&job, &found, &Graces::default(), T0 + TimeDelta::minutes(minutes))
}

#[test]
fn a_run_that_was_repeated_ends_as_it_ends_itself_and_is_waited_for() {
    assert!(matches!(repeated(Some(0), 0), Ending::Ended(job) if job.status == Status::Done));
    let Ending::Ended(failed) = repeated(Some(3), 0) else { panic!("its own fault") };
    assert_eq!(failed.status, Status::Error);
    assert!(failed.message.contains("exited with code 3"), "{}", failed.message);
    assert!(matches!(repeated(None, 4), Ending::Wait { .. }), "it may still be at it");
    let Ending::Retry { job, .. } = repeated(None, 5) else { panic!("Slurm has noticed it by now") };
    assert_eq!(job.attempt.unwrap().verdict.unwrap().rule.as_deref(), Some("begun-before"));
}

#[test]
fn a_run_that_slurm_has_ended_and_repeated_has_not_failed_by_itself() {
    let Ending::Retry { job, .. } = repeated(Some(143), 0) else { panic!("Slurm has ended it") };
    assert_eq!(job.attempt.unwrap().verdict.unwrap().rule.as_deref(), Some("forgotten"));
    let said = |word| Case { tao: true, word: Some(word), ..Case::default() };
    let done = repeated_of(&said("SUCCESS"), Some(143), 0);
    assert!(matches!(done, Ending::Ended(job) if job.status == Status::Done), "it had said so before");
    assert!(matches!(repeated_of(&said("RUNNING"), Some(143), 0), Ending::Retry { .. }));
    assert!(
        matches!(repeated_of(&said("FAILURE"), Some(143), 0), Ending::Ended(job) if job.status == Status::Error),
        "it had failed, and was ended for that"
    );
    let canceled = repeated_of(&Case { desired: DesiredState::Cancel, ..Case::default() }, Some(143), 0);
    assert!(
        matches!(canceled, Ending::Ended(job) if job.status == Status::Canceled),
        "its owner wanted that"
    );
}

#[test]
fn a_copy_that_found_the_attempt_taken_waits_until_it_shows_by_whom() {
    let mut job = Case { state: Some(SlurmState::Failed), ..Case::default() }.job();
    let claimed = ExitCode { code: remote::script::EXIT_CLAIMED, signal: 0 };
    (job.run.exit, job.run.ran_before) = (Some(claimed), 1000);
    let after = |minutes: i64, run_claim| {
        let markers = Markers { run_claim, ..NO_MARKERS };
        let found = Findings { markers: &markers, ..NOTHING };
        conclude(&job, &found, &Graces::default(), T0 + TimeDelta::minutes(minutes))
    };
    assert!(matches!(after(4, None), Ending::Wait { .. }), "a claim is seen late on the login host");
    let Ending::Adopt(job) = after(4, SlurmJobId::new(8)) else { panic!() };
    assert_eq!(job.run.ran_before, 1000, "the attempts before have taken their time");
    assert!(matches!(after(5, None), Ending::Retry { .. }), "nobody has it");
}

/// What comes of a job that Slurm does not know any more.
fn forgotten(markers: &Markers) -> Ending {
    forgotten_with(None, &Findings { markers, err_tail: b"it has said this\n", ..NOTHING })
}

fn forgotten_with(word: Option<&'static str>, found: &Findings<'_>) -> Ending {
    let job = Case { tao: false, code: None, state: None, word, ..Case::default() }.job();
    conclude(&job, found, &Graces::default(), T0 + TimeDelta::minutes(20))
}

#[test]
fn a_job_that_slurm_has_lost_is_sent_again_if_it_surely_never_ran() {
    let rule = |ending| match ending {
        Ending::Retry { job, .. } => job.attempt.unwrap().verdict.unwrap().rule,
        other => panic!("{other:?}"),
    };
    assert_eq!(rule(forgotten(&NO_MARKERS)).as_deref(), Some("forgotten"));
    let claimed = Markers { run_claim: SlurmJobId::new(7), ..NO_MARKERS };
    assert!(
        matches!(forgotten(&claimed), Ending::Ended(job) if job.status == Status::Error),
        "it may still run"
    );
    let exit = |code| Some(ExitRecord { slurm_id: SlurmJobId::new(7).unwrap(), restart: 0, code, at: 0 });
    let terminated = Markers { exit: exit(143), ..claimed.clone() };
    assert_eq!(
        rule(forgotten(&terminated)).as_deref(),
        Some("forgotten"),
        "Slurm ends what it does not know"
    );
    let failed = Markers { exit: exit(1), ..claimed };
    assert!(matches!(forgotten(&failed), Ending::Ended(job) if job.status == Status::Error));
}

#[test]
fn a_job_that_slurm_has_lost_and_that_failed_without_a_word_is_sent_again() {
    let exit = |code| Some(ExitRecord { slurm_id: SlurmJobId::new(7).unwrap(), restart: 0, code, at: 0 });
    let [failed, other] =
        [1, 2].map(|code| Markers { exit: exit(code), started: Some(started()), ..NO_MARKERS });
    // Each log of a role is followed by a newline.
    let silent = Findings { markers: &failed, role_tails: b"\n\n", ..NOTHING };
    let Ending::Retry { job, .. } = forgotten_with(None, &silent) else { panic!("its step was ended") };
    assert_eq!(job.attempt.unwrap().verdict.unwrap().rule.as_deref(), Some("forgotten"));
    for (word, found) in [
        (Some("RUNNING"), silent),
        (None, Findings { out_tail: b"50 %", ..silent }),
        (None, Findings { err_tail: b"no such file", ..silent }),
        (None, Findings { role_tails: b"50 %\n", ..silent }),
        (None, Findings { readable: false, ..silent }),
        (None, Findings { markers: &other, ..silent }),
    ] {
        let ending = forgotten_with(word, &found);
        assert!(matches!(&ending, Ending::Ended(job) if job.status == Status::Error), "{ending:?}");
    }
}

/// The rule by which a job is sent again that failed with code 1, `lasted` seconds after its start at second 100, and whose last
/// mark of a beginning is of second `marked`.
fn failed_at_once(marked: i64, lasted: i64) -> Option<String> {
    let mut job = Case { state: Some(SlurmState::Failed), ..Case::default() }.job();
    job.run.exit = Some(ExitCode { code: 1, signal: 0 });
    (job.run.started_at, job.run.ended_at) = (timestamp(Some(100)), timestamp(Some(100 + lasted)));
    let markers = Markers { started: Some(StartedMarker { at: marked, ..started() }), ..Markers::default() };
    let found = Findings { markers: &markers, ..NOTHING };
    match conclude(&job, &found, &Graces::default(), T0 + TimeDelta::minutes(4)) {
        Ending::Retry { job, .. } | Ending::Ended(job) => job.attempt.unwrap().verdict.unwrap().rule,
        other => panic!("{other:?}"),
    }
}

#[test]
fn the_mark_of_a_run_that_slurm_has_forgotten_is_none_of_the_one_that_it_gave_up() {
    assert_eq!(failed_at_once(90, 1).as_deref(), Some("never-began"));
    assert_eq!(failed_at_once(100, 1), None, "its own mark");
    assert_eq!(failed_at_once(90, 5), None, "the clock of its node may be slow");
}

#[test]
fn a_script_that_slurm_has_ended_on_its_own_account_is_sent_again() {
    let rule = |code: u8, signal: u8, by_itself| {
        let mut job =
            Case { state: Some(SlurmState::Failed), code: Some(by_itself), ..Case::default() }.job();
        job.run.exit = Some(ExitCode { code, signal });
        let exit =
            Some(ExitRecord { slurm_id: SlurmJobId::new(7).unwrap(), restart: 0, code: by_itself, at: 0 });
        let markers = Markers { exit, started: Some(started()), ..Markers::default() };
        match conclude(&job, &Findings { markers: &markers, ..NOTHING }, &Graces::default(), T0) {
            Ending::Retry { job, .. } | Ending::Ended(job) => job.attempt.unwrap().verdict.unwrap().rule,
            other => panic!("{other:?}"),
        }
    };
    assert_eq!(rule(15, 0, 143).as_deref(), Some("ended-by-slurm"));
    assert_eq!(rule(0, 15, 143).as_deref(), Some("ended-by-slurm"), "the mark is of the run before");
    assert_eq!(rule(143, 0, 143), None, "somebody's kill, and no word of Slurm's");
    assert_eq!(rule(15, 0, 15), None, "its program's own code");
}

/// What comes of a job that Slurm started again, in vain, after it had come to its end with code 0; `heard` is what was read before
/// that was seen, `unheard` what stands behind it.
fn started_in_vain(state: Option<&SlurmState>, heard: &str, unheard: &str, marked: u32) -> Ending {
    let mut job = Case { tao: true, state: state.cloned(), code: None, ..Case::default() }.job();
    absorb(&mut job, &[of_run(0, heard)], T0 + TimeDelta::minutes(1));
    job.run.begin_again();
    (job.run.requeues, job.run.started_at) = (1, Some(T0 + TimeDelta::minutes(1)));
    let exit = ExitRecord { slurm_id: SlurmJobId::new(7).unwrap(), restart: marked, code: 0, at: 30 };
    let began = StartedMarker { at: 20, restart: marked, ..started() };
    let markers = Markers { exit: Some(exit), started: Some(began), ..Markers::default() };
    let rest = StatusChunk {
        size: (heard.len() + unheard.len()) as u64,
        written_at: 1,
        start_offset: heard.len() as u64,
        skipped: 0,
        before: heard.as_bytes().to_vec(),
        bytes: unheard.as_bytes().to_vec(),
        ..of_run(0, "")
    };
    let status: &[StatusChunk] = if unheard.is_empty() { &[] } else { &[rest] };
    let found = Findings { markers: &markers, status, ..NOTHING };
    conclude(&job, &found, &Graces::default(), T0 + TimeDelta::minutes(2))
}

#[test_case(Some(&SlurmState::LaunchFailed); "it could not be started")]
#[test_case(Some(&SlurmState::Cancelled); "it was given up")]
#[test_case(Some(&SlurmState::Completed); "it ended again as it had ended")]
#[test_case(None; "it was forgotten")]
fn what_slurm_has_started_again_in_vain_has_ended_as_it_said(state: Option<&SlurmState>) {
    let (running, success) = ("{\"status\":\"RUNNING\"}\n", "{\"status\":\"SUCCESS\"}\n");
    for (heard, unheard) in [(running, success), (success, ""), ("", success)] {
        let ending = started_in_vain(state, heard, unheard, 0);
        let Ending::Ended(job) = ending else { panic!("{heard}{unheard}: {ending:?}") };
        assert_eq!(job.status, Status::Done, "{heard}{unheard}: {}", job.message);
        assert_eq!((job.run.requeues, job.run.started_at), (0, timestamp(Some(20))));
    }
    let failure = started_in_vain(state, "{\"status\":\"FAILURE\",\"message\":\"no\"}\n", "", 0);
    assert!(matches!(failure, Ending::Ended(job) if job.message.contains("reported a failure: no")));
    let again = started_in_vain(state, success, "", 1);
    assert!(!matches!(again, Ending::Ended(job) if job.status == Status::Done), "the mark is of the new run");
}

#[test_case(&SlurmState::NodeFail)]
#[test_case(&SlurmState::Preempted)]
fn what_was_through_when_its_nodes_were_lost_is_not_done_again(state: &SlurmState) {
    let ended = |code: u8| {
        let exit = ExitRecord { slurm_id: SlurmJobId::new(7).unwrap(), restart: 0, code, at: 30 };
        let markers = Markers { exit: Some(exit), started: Some(started()), ..Markers::default() };
        let job = Case { tao: false, state: Some(state.clone()), code: None, ..Case::default() }.job();
        conclude(
            &job,
            &Findings { markers: &markers, ..NOTHING },
            &Graces::default(),
            T0 + TimeDelta::minutes(2),
        )
    };
    assert!(matches!(ended(0), Ending::Ended(job) if job.status == Status::Done));
    assert!(
        !matches!(ended(1), Ending::Ended(job) if job.message.contains("code 1")),
        "its node was failing"
    );
}

#[test_case(&SlurmState::Timeout)]
#[test_case(&SlurmState::Deadline)]
fn what_was_through_long_before_its_time_ran_out_is_done(state: &SlurmState) {
    let left_before_its_end = |seconds: i64| {
        let exit = ExitRecord { slurm_id: SlurmJobId::new(7).unwrap(), restart: 0, code: 0, at: 30 };
        let markers = Markers { exit: Some(exit), started: Some(started()), ..Markers::default() };
        let mut job = Case { tao: false, state: Some(state.clone()), code: None, ..Case::default() }.job();
        job.run.ended_at = timestamp(Some(30 + seconds));
        let found = Findings { markers: &markers, ..NOTHING };
        match conclude(&job, &found, &Graces::default(), T0 + TimeDelta::minutes(2)) {
            Ending::Ended(job) => job.status,
            other => panic!("{other:?}"),
        }
    };
    assert_eq!(left_before_its_end(300), Status::Done);
    assert_eq!(left_before_its_end(30), Status::Error, "a program may end with 0 because it is told to");
}

#[test]
fn what_began_and_was_ended_as_if_it_waited_may_still_leave_its_mark() {
    let mut job =
        Case { tao: false, state: Some(SlurmState::Cancelled), code: None, ..Case::default() }.job();
    job.run.started_at = None;
    let markers = Markers { started: Some(started()), ..Markers::default() };
    let found = Findings { markers: &markers, ..NOTHING };
    let at = |seconds| conclude(&job, &found, &Graces::default(), T0 + TimeDelta::seconds(seconds));
    assert!(matches!(at(1), Ending::Wait { .. }));
    assert!(matches!(at(120), Ending::Ended(job) if job.status == Status::Canceled));
}

/// Its files may be seen late, as long as nothing is known of its own start.
#[test]
fn what_the_run_before_had_said_is_not_the_last_word_of_the_one_that_reached_its_limit() {
    let mut job = Case { tao: true, state: Some(SlurmState::Timeout), code: None, ..Case::default() }.job();
    absorb(&mut job, &[of_run(0, "{\"status\":\"SUCCESS\"}\n")], T0);
    job.run.started_at = Some(T0 + TimeDelta::minutes(10));
    let started = StartedMarker { at: 20, ..started() };
    let markers = Markers { started: Some(started), ..Markers::default() };
    let found = Findings { markers: &markers, ..NOTHING };
    let at = |seconds| conclude(&job, &found, &Graces::default(), T0 + TimeDelta::seconds(seconds));
    assert!(matches!(at(1), Ending::Wait { .. }), "{:?}", at(1));
    assert!(matches!(at(120), Ending::Ended(job) if job.status == Status::Error));
}

#[test]
fn what_has_ended_as_it_said_is_done_though_it_was_to_be_paused_meanwhile() {
    let mut job =
        Case { tao: true, state: Some(SlurmState::Completed), code: Some(0), ..Case::default() }.job();
    absorb(&mut job, &[of_run(0, "{\"status\":\"SUCCESS\"}\n")], T0);
    job.run.begin_again();
    (job.run.requeues, job.desired) = (1, DesiredState::Pause);
    let exit = ExitRecord { slurm_id: SlurmJobId::new(7).unwrap(), restart: 0, code: 0, at: 30 };
    let markers = Markers { exit: Some(exit), started: Some(started()), ..Markers::default() };
    let found = Findings { markers: &markers, ..NOTHING };
    let ending = conclude(&job, &found, &Graces::default(), T0 + TimeDelta::minutes(2));
    assert!(matches!(ending, Ending::Ended(job) if job.status == Status::Done));
}

#[test]
fn a_script_that_sigterm_has_ended_before_it_heard_it_started_nothing() {
    let of = |exit: ExitCode, minutes: i64| {
        let mut job = Case { state: Some(SlurmState::Failed), ..Case::default() }.job();
        job.run.exit = Some(exit);
        let markers = Markers { started: Some(started()), run_claim: SlurmJobId::new(7), ..NO_MARKERS };
        let found = Findings { markers: &markers, ..NOTHING };
        conclude(&job, &found, &Graces::default(), T0 + TimeDelta::minutes(minutes))
    };
    for (exit, rule) in [
        (ExitCode { code: 0, signal: 15 }, "never-began"),
        (ExitCode { code: remote::script::EXIT_NO_MARKS, signal: 0 }, "no-marks"),
        (ExitCode { code: remote::script::EXIT_NODE_FAILED, signal: 0 }, "node-failed"),
    ] {
        assert!(matches!(of(exit, 0), Ending::Wait { .. }), "the mark of its end may be late");
        let Ending::Retry { job, .. } = of(exit, 1) else { panic!("{exit}") };
        assert_eq!(job.attempt.unwrap().verdict.unwrap().rule.as_deref(), Some(rule));
    }
}

#[test]
fn what_a_run_has_said_is_not_what_a_later_one_ended_with() {
    let mut job =
        Case { tao: true, state: Some(SlurmState::LaunchFailed), code: None, ..Case::default() }.job();
    absorb(&mut job, &[of_run(0, "{\"status\":\"SUCCESS\"}\n")], T0);
    for requeues in [1, 2] {
        job.run.begin_again();
        job.run.requeues = requeues;
    }
    let exit = ExitRecord { slurm_id: SlurmJobId::new(7).unwrap(), restart: 1, code: 0, at: 30 };
    let began = StartedMarker { at: 20, restart: 1, ..started() };
    let markers = Markers { exit: Some(exit), started: Some(began), ..Markers::default() };
    let found = Findings { markers: &markers, ..NOTHING };
    let ending = conclude(&job, &found, &Graces::default(), T0 + TimeDelta::minutes(2));
    assert!(
        matches!(ending, Ending::Ended(job) if job.status == Status::Error),
        "the second run was not heard"
    );
}
