#![expect(clippy::wildcard_enum_match_arm, reason = "what a test does not expect is what it shows")]

use chrono::{DateTime, TimeDelta};
use remote::{ExitRecord, StartedMarker};
use slurm::{ExitCode, SlurmJobId, timestamp};
use test_case::test_case;

use super::*;
use crate::{
    Outcome, Phase,
    fixtures::{as_tao, submitted_job},
};

mod ahead;
mod canceled;
mod failures;
mod image_files;
mod launches;
mod limits;
mod messages;
mod restarts;
mod results;
mod runs;
mod self_cancel;

const T0: Timestamp = DateTime::UNIX_EPOCH;

const NO_MARKERS: Markers = Markers {
    exit: None,
    started: None,
    run_claim: None,
    requeued: None,
    begun: false,
    warned: false,
    limited: false,
    self_canceled: None,
};
/// The mark of a script that has come as far as its program.
fn started() -> StartedMarker {
    StartedMarker { slurm_id: SlurmJobId::new(7).unwrap(), restart: 0, at: 0, hostname: String::new() }
}

const NOTHING: Findings<'_> = Findings {
    readable: true,
    left_out: false,
    markers: &NO_MARKERS,
    status: &[],
    out_tail: b"",
    err_tail: b"",
    role_tails: b"",
    errors: &[],
    ended_with: None,
    progress: None,
    results: Some(&[]),
    unhealthy: &[],
    spare: None,
};

/// A job that Slurm left in `state`, whose script left `code`, and whose status file's last word is `word`.
struct Case {
    tao: bool,
    state: Option<SlurmState>,
    code: Option<u8>,
    word: Option<&'static str>,
    desired: DesiredState,
    err: &'static str,
    readable: bool,
}

impl Default for Case {
    fn default() -> Self {
        let state = Some(SlurmState::Completed);
        Self {
            tao: false,
            state,
            code: Some(0),
            word: None,
            desired: DesiredState::Run,
            err: "",
            readable: true,
        }
    }
}

impl Case {
    fn job(&self) -> Job {
        let mut job = if self.tao { as_tao(submitted_job()) } else { submitted_job() };
        job.desired = self.desired;
        job.finishing_since = Some(T0);
        job.run.progress.word = self.word.map(str::to_owned);
        job.run.state = self.state.clone();
        job.run.started_at = self.word.map(|_| T0);
        job.run.ended_at = Some(T0);
        job.run.is_over = true;
        job
    }

    fn after(&self, seconds: i64) -> Ending {
        let exit = self.code.map(|code| ExitRecord {
            slurm_id: SlurmJobId::new(7).unwrap(),
            restart: 0,
            code,
            at: 0,
        });
        let run_claim = SlurmJobId::new(7);
        let markers = Markers { exit, started: Some(started()), run_claim, ..Markers::default() };
        let found =
            Findings { readable: self.readable, markers: &markers, err_tail: self.err.as_bytes(), ..NOTHING };
        conclude(&self.job(), &found, &Graces::default(), T0 + TimeDelta::seconds(seconds))
    }

    fn ended(&self) -> Job {
        self.ended_after(0)
    }

    fn ended_after(&self, seconds: i64) -> Job {
        match self.after(seconds) {
            Ending::Ended(job) => job,
            other => panic!("{other:?}"),
        }
    }
}

#[test_case(&Case::default() => Status::Done ; "a command that exits 0")]
#[test_case(&Case { tao: true, word: Some("SUCCESS"), ..Case::default() } => Status::Done ; "a training that says SUCCESS")]
#[test_case(&Case { state: Some(SlurmState::LaunchFailed), ..Case::default() } => Status::Done ; "a command that exits 0 before its controller is killed")]
#[test_case(&Case { tao: true, word: Some("FAILURE"), ..Case::default() } => Status::Error ; "a training that says FAILURE and exits 0")]
#[test_case(&Case { word: Some("FAILURE"), ..Case::default() } => Status::Error ; "a command that says FAILURE and exits 0")]
#[test_case(&Case { tao: true, word: Some("SUCCESS"), code: Some(1), state: Some(SlurmState::Failed), ..Case::default() } => Status::Error ; "SUCCESS and then a crash")]
#[test_case(&Case { tao: true, word: Some("SUCCESS"), code: None, state: None, ..Case::default() } => Status::Done ; "SUCCESS and then forgotten")]
#[test_case(&Case { tao: true, word: Some("SUCCESS"), code: Some(143), state: None, ..Case::default() } => Status::Done ; "SUCCESS and then forgotten and ended")]
#[test_case(&Case { tao: true, word: Some("SUCCESS"), code: Some(1), state: None, ..Case::default() } => Status::Error ; "SUCCESS and then a crash and forgotten")]
#[test_case(&Case { tao: true, word: Some("RUNNING"), code: None, state: None, ..Case::default() } => Status::Error ; "forgotten in the middle")]
#[test_case(&Case { code: Some(3), state: Some(SlurmState::Failed), ..Case::default() } => Status::Error ; "an exit code")]
#[test_case(&Case { code: Some(3), ..Case::default() } => Status::Error ; "an exit code that Slurm did not notice")]
#[test_case(&Case { state: Some(SlurmState::Cancelled), code: None, ..Case::default() } => Status::Canceled ; "canceled by somebody")]
#[test_case(&Case { state: Some(SlurmState::Cancelled), code: None, desired: DesiredState::Cancel, ..Case::default() } => Status::Canceled ; "canceled by us")]
#[test_case(&Case { state: Some(SlurmState::Cancelled), ..Case::default() } => Status::Done ; "done, and given up by a controller that forgot it")]
#[test_case(&Case { state: Some(SlurmState::Cancelled), code: Some(3), ..Case::default() } => Status::Error ; "failed, and given up by a controller that forgot it")]
#[test_case(&Case { state: Some(SlurmState::LaunchFailed), code: Some(3), ..Case::default() } => Status::Error ; "failed, and not started again")]
#[test_case(&Case { state: Some(SlurmState::Cancelled), code: Some(143), ..Case::default() } => Status::Canceled ; "ended by somebody")]
#[test_case(&Case { desired: DesiredState::Cancel, ..Case::default() } => Status::Done ; "done before the cancellation reached it")]
#[test_case(&Case { state: Some(SlurmState::Timeout), code: None, ..Case::default() } => Status::Error ; "time limit")]
#[test_case(&Case { state: Some(SlurmState::OutOfMemory), code: None, ..Case::default() } => Status::Error ; "out of memory")]
#[test_case(&Case { state: Some(SlurmState::Preempted), code: None, ..Case::default() } => Status::Canceled ; "preempted for good")]
#[test_case(&Case { state: None, code: Some(0), ..Case::default() } => Status::Done ; "only the marker knows it ended well")]
#[test_case(&Case { state: None, code: Some(2), ..Case::default() } => Status::Error ; "only the marker knows it failed")]
#[test_case(&Case { state: None, code: Some(143), desired: DesiredState::Cancel, ..Case::default() } => Status::Canceled ; "only the marker knows of the canceled one")]
#[test_case(&Case { tao: true, word: Some("SUCCESS"), state: Some(SlurmState::Cancelled), code: None, ..Case::default() } => Status::Done ; "freed after it had said SUCCESS")]
#[test_case(&Case { tao: true, word: Some("SUCCESS"), state: Some(SlurmState::Timeout), code: None, ..Case::default() } => Status::Done ; "SUCCESS and a hang until the limit")]
#[test_case(&Case { tao: true, word: Some("FAILURE"), state: Some(SlurmState::Cancelled), code: None, ..Case::default() } => Status::Error ; "freed after it had said FAILURE")]
#[test_case(&Case { tao: true, word: Some("SUCCESS"), state: Some(SlurmState::Cancelled), code: None, desired: DesiredState::Cancel, ..Case::default() } => Status::Canceled ; "canceled by its owner after SUCCESS")]
#[test_case(&Case { state: None, code: None, ..Case::default() } => Status::Error ; "nobody knows")]
#[test_case(&Case { state: None, code: None, desired: DesiredState::Cancel, ..Case::default() } => Status::Canceled ; "nobody knows, and it was to be canceled")]
fn the_evidence_decides(case: &Case) -> Status {
    // When nothing is waited for any more.
    let job = case.ended_after(60);
    assert_eq!(job.phase, crate::Phase::Ended);
    assert!(job.finished_at.is_some());
    job.status
}

#[test]
fn a_training_without_a_last_word_gets_a_grace_and_then_the_truth() {
    let case = Case { tao: true, word: Some("RUNNING"), ..Case::default() };
    assert!(matches!(case.after(59), Ending::Wait { until, .. } if until == T0 + TimeDelta::seconds(60)));
    match case.after(60) {
        Ending::Ended(job) => assert_eq!(job.status, Status::Error),
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_completed_job_is_not_done_before_its_last_mark_is_seen() {
    let case = Case { code: None, ..Case::default() };
    let mut job = case.job();
    job.run.exit = Some(ExitCode { code: 0, signal: 0 });
    let conclude = |seconds| conclude(&job, &NOTHING, &Graces::default(), T0 + TimeDelta::seconds(seconds));
    assert!(matches!(conclude(59), Ending::Wait { .. }), "a FAILURE may be as late as the mark");
    assert!(matches!(conclude(60), Ending::Ended(job) if job.status == Status::Done));
}

#[test]
fn a_marker_left_by_another_slurm_job_is_no_evidence() {
    let case = Case { tao: false, code: None, state: None, ..Case::default() };
    let exit = ExitRecord { slurm_id: SlurmJobId::new(6).unwrap(), restart: 0, code: 0, at: 0 };
    let markers = Markers { exit: Some(exit), ..Markers::default() };
    let found = Findings { markers: &markers, ..NOTHING };
    match conclude(&case.job(), &found, &Graces::default(), T0) {
        Ending::Ended(job) => assert_eq!(job.status, Status::Error),
        other => panic!("{other:?}"),
    }
}

#[test]
fn an_exit_marker_that_must_be_there_is_waited_for_and_not_for_ever() {
    let case = Case { state: Some(SlurmState::Failed), code: None, ..Case::default() };
    assert!(matches!(case.after(59), Ending::Wait { .. }));
    assert!(matches!(case.after(60), Ending::Ended(job) if job.status == Status::Error));
}

#[test]
fn files_that_cannot_be_looked_at_say_nothing_for_a_while() {
    let case = Case { tao: true, word: Some("SUCCESS"), readable: false, ..Case::default() };
    assert!(matches!(case.after(599), Ending::Wait { .. }), "as long as a file server may take");
    assert!(matches!(case.after(600), Ending::Ended(job) if job.status == Status::Done));
}

#[test]
fn an_unreadable_status_file_is_named() {
    let case = Case { tao: true, readable: false, ..Case::default() };
    assert!(matches!(case.after(599), Ending::Wait { .. }));
    let markers = Markers {
        exit: Some(ExitRecord { slurm_id: SlurmJobId::new(7).unwrap(), restart: 0, code: 0, at: 0 }),
        ..NO_MARKERS
    };
    let left_out = Findings { left_out: true, markers: &markers, ..NOTHING };
    let later = T0 + TimeDelta::seconds(60);
    for (ending, expected) in [
        (case.after(600), "its files could not be read"),
        (conclude(&case.job(), &left_out, &Graces::default(), later), "contains % or \\ or is not UTF-8"),
    ] {
        let Ending::Ended(job) = ending else { panic!("{ending:?}") };
        assert_eq!(job.status, Status::Error);
        assert!(job.message.contains(expected), "{}", job.message);
    }
}

#[test]
fn a_copy_that_found_the_attempt_taken_gives_way_to_the_one_that_runs() {
    let mut job = Case { state: Some(SlurmState::Failed), ..Case::default() }.job();
    (job.run.started_at, job.run.nodes, job.run.requeues) = (Some(T0), Some("node01".to_owned()), 1);
    let exit = ExitRecord { slurm_id: SlurmJobId::new(7).unwrap(), restart: 0, code: 120, at: 0 };
    let markers = Markers { exit: Some(exit), run_claim: SlurmJobId::new(8), ..Markers::default() };
    let found = Findings { markers: &markers, ..NOTHING };
    match conclude(&job, &found, &Graces::default(), T0) {
        Ending::Adopt(job) => {
            assert_eq!(job.phase, crate::Phase::InQueue);
            assert_eq!(job.attempt.unwrap().slurm_id, SlurmJobId::new(8));
            let told = (job.run.started_at, job.run.nodes, job.run.requeues);
            assert_eq!(told, (None, None, 0), "what Slurm has told is of the copy");
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_copy_that_was_ended_before_it_could_look_gives_way_too() {
    let job =
        Case { state: Some(SlurmState::Cancelled), desired: DesiredState::Cancel, ..Case::default() }.job();
    let markers = Markers { run_claim: SlurmJobId::new(8), ..Markers::default() };
    let found = Findings { markers: &markers, ..NOTHING };
    let Ending::Adopt(adopted) = conclude(&job, &found, &Graces::default(), T0) else {
        panic!("the first copy runs")
    };
    assert_eq!(adopted.attempt.as_ref().unwrap().slurm_id, SlurmJobId::new(8));
    assert_eq!(crate::plan(&adopted, &Graces::default(), T0), crate::Step::Cancel);
}

#[test]
fn a_last_line_without_its_newline_counts_once_nobody_writes_any_more() {
    let job = Case { tao: true, word: Some("RUNNING"), ..Case::default() }.job();
    let exit = ExitRecord { slurm_id: SlurmJobId::new(7).unwrap(), restart: 0, code: 0, at: 0 };
    let markers = Markers { exit: Some(exit), ..Markers::default() };
    let chunk = StatusChunk {
        key: String::new(),
        path: "/lustre/r/status.json".parse().unwrap(),
        inode: 1,
        size: 20,
        written_at: 0,
        note: None,
        start_offset: 0,
        skipped: 0,
        before: Vec::new(),
        bytes: b"{\"status\":\"SUCCESS\"}".to_vec(),
        restarted: false,
        complete: true,
    };
    let status = [chunk];
    let found = Findings { markers: &markers, status: &status, ..NOTHING };
    match conclude(&job, &found, &Graces::default(), T0) {
        Ending::Ended(job) => assert_eq!(job.status, Status::Done),
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_job_that_lost_its_node_is_retried_without_it() {
    let mut job = Case { state: Some(SlurmState::NodeFail), code: None, ..Case::default() }.job();
    job.run.nodes = Some("node01".to_owned());
    let found = Findings { markers: &Markers::default(), ..NOTHING };
    let Ending::Retry { job, due_at } = conclude(&job, &found, &Graces::default(), T0) else {
        panic!("it must be sent again")
    };
    assert_eq!((job.status, job.phase, job.retry_count), (Status::Pending, Phase::RetryWait, 1));
    assert_eq!(due_at, T0 + TimeDelta::milliseconds(12_015));
    assert_eq!(job.failures.len(), 1);
    let verdict = job.attempt.unwrap().verdict.unwrap();
    assert_eq!(verdict.outcome, Outcome::Retried);
    assert_eq!(job.message, format!("Attempt 1 failed. {}", verdict.why));
    assert!(verdict.why.contains("excluding node01"), "{}", verdict.why);
}

#[test]
fn a_job_whose_script_could_leave_nothing_is_sent_again() {
    let job = Case { state: Some(SlurmState::Failed), code: None, ..Case::default() }.job();
    let later = T0 + TimeDelta::minutes(2);
    let found = |markers| Findings { markers, ..NOTHING };
    let Ending::Retry { job: again, .. } = conclude(&job, &found(&NO_MARKERS), &Graces::default(), later)
    else {
        panic!("its disk was full, for instance")
    };
    assert!(again.message.contains("could not write"), "{}", again.message);
    let claimed = Markers { run_claim: SlurmJobId::new(7), ..NO_MARKERS };
    let ending = conclude(&job, &found(&claimed), &Graces::default(), later);
    assert!(matches!(ending, Ending::Retry { .. }), "it was ended before it began: {ending:?}");
    let began = Markers { started: Some(started()), ..claimed };
    let ending = conclude(&job, &found(&began), &Graces::default(), later);
    assert!(matches!(ending, Ending::Ended(_)), "its program has run: {ending:?}");
}

#[test]
fn a_job_that_slurm_could_not_start_is_sent_again() {
    let job = Case { state: Some(SlurmState::LaunchFailed), code: None, ..Case::default() }.job();
    let found = Findings { markers: &Markers::default(), ..NOTHING };
    let Ending::Retry { job, .. } = conclude(&job, &found, &Graces::default(), T0) else {
        panic!("it must be sent again")
    };
    assert!(job.message.contains("Slurm could not start the job"), "{}", job.message);
}

#[test]
fn a_cancellation_wins_over_another_try() {
    let case = Case {
        state: Some(SlurmState::NodeFail),
        code: None,
        desired: DesiredState::Cancel,
        ..Case::default()
    };
    assert!(matches!(case.after(0), Ending::Ended(_)));
}

#[test]
fn a_paused_job_is_at_rest_and_not_canceled() {
    let case = Case {
        state: Some(SlurmState::Cancelled),
        code: None,
        desired: DesiredState::Pause,
        ..Case::default()
    };
    let Ending::Paused(job) = case.after(0) else { panic!("it must be at rest") };
    assert_eq!((job.status, job.phase), (Status::Paused, Phase::Paused));
    assert!(job.finished_at.is_none());
    assert_eq!(job.message, "Paused; when it is resumed, it starts over.");
    let Ending::Paused(training) = (Case { tao: true, ..case }).after(0) else {
        panic!("it must be at rest")
    };
    assert_eq!(training.message, "Paused; the training resumes from its newest checkpoint.");
}

#[test]
fn a_node_that_fails_while_its_job_is_being_paused_does_not_fail_the_job() {
    let case = Case {
        state: Some(SlurmState::NodeFail),
        code: None,
        desired: DesiredState::Pause,
        ..Case::default()
    };
    assert!(matches!(case.after(0), Ending::Paused(job) if job.phase == Phase::Paused));
}

#[test]
fn a_job_that_ended_well_before_it_could_be_paused_is_done() {
    let case = Case { desired: DesiredState::Pause, ..Case::default() };
    assert_eq!(case.ended().status, Status::Done);
}

#[test]
fn a_job_whose_time_ran_out_while_it_was_being_paused_may_still_show_its_success() {
    let case = Case {
        state: Some(SlurmState::Timeout),
        code: None,
        desired: DesiredState::Pause,
        ..Case::default()
    };
    assert!(matches!(case.after(59), Ending::Wait { .. }), "its final status may be late");
    assert_eq!(case.ended_after(60).status, Status::Error);
    let success = Case { word: Some("SUCCESS"), ..case };
    assert_eq!(success.ended().status, Status::Done);
}
