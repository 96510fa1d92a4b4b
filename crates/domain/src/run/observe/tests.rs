mod idle;
mod launches;
mod quiet;
mod requeues;

use chrono::{DateTime, TimeDelta};
use remote::{ExitRecord, Markers, SignsOfLife, StatusChunk};
use slurm::{ExitCode, SlurmJobId};
use test_case::test_case;

use super::*;
use crate::{
    fixtures::submitted_job, job::status::Status, progress::status_file::StatusWord, run::evidence::Records,
};

const T0: Timestamp = DateTime::UNIX_EPOCH;

fn row(job: &Job, state: SlurmState, reason: &str) -> QueueRow {
    QueueRow {
        id: SlurmJobId::new(7).unwrap(),
        state,
        reason: reason.to_owned(),
        nodes: "node01".to_owned(),
        submit: Some(1),
        start: Some(2),
        end: None,
        partition: "polar".to_owned(),
        name: job.attempt.as_ref().unwrap().token.to_string(),
    }
}

fn see(job: &Job, seen: &Observation<'_>, seconds: i64) -> Option<ObservedChange> {
    observe(job, seen, &Graces::default(), T0 + TimeDelta::seconds(seconds))
}

fn queued(job: &Job, state: SlurmState, reason: &str) -> Option<ObservedChange> {
    let row = row(job, state, reason);
    see(job, &Observation { queue: Some(&row), queue_answered: true, ..Observation::default() }, 10)
}

#[test_case(SlurmState::Pending => (Status::Pending, Phase::InQueue))]
#[test_case(SlurmState::Configuring => (Status::Pending, Phase::InQueue))]
#[test_case(SlurmState::Requeued => (Status::Pending, Phase::InQueue))]
#[test_case(SlurmState::RequeueHold => (Status::Pending, Phase::InQueue))]
#[test_case(SlurmState::SpecialExit => (Status::Pending, Phase::InQueue))]
#[test_case(SlurmState::Running => (Status::Running, Phase::Running))]
#[test_case(SlurmState::Completing => (Status::Running, Phase::Running))]
#[test_case(SlurmState::Suspended => (Status::Paused, Phase::Suspended))]
#[test_case(SlurmState::Stopped => (Status::Paused, Phase::Suspended))]
#[test_case(SlurmState::Completed => (Status::Pending, Phase::Finishing))]
#[test_case(SlurmState::Failed => (Status::Pending, Phase::Finishing))]
#[test_case(SlurmState::Cancelled => (Status::Pending, Phase::Finishing))]
fn each_state_of_slurm_has_its_place(state: SlurmState) -> (Status, Phase) {
    let next = queued(&submitted_job(), state, "None").unwrap();
    assert_eq!(next.step_due, next.job.phase == Phase::Finishing);
    (next.job.status, next.job.phase)
}

#[test]
fn a_state_nobody_knows_changes_nothing() {
    assert!(queued(&submitted_job(), SlurmState::Unknown("EXOTIC".to_owned()), "None").is_none());
}

#[test]
fn the_same_sight_twice_is_no_news() {
    let once = queued(&submitted_job(), SlurmState::Running, "None").unwrap().job;
    assert!(queued(&once, SlurmState::Running, "None").is_none());
}

#[test]
fn a_held_job_says_who_has_to_act() {
    let next = queued(&submitted_job(), SlurmState::Pending, "JobHeldAdmin").unwrap();
    assert!(next.job.message.starts_with("Held on the cluster"), "{}", next.job.message);
    assert_eq!(next.job.pending_reason.as_deref(), Some("JobHeldAdmin"));
}

/// Waits in the queue since second 1, to start at `start`.
fn waiting(job: &Job, start: Option<i64>) -> QueueRow {
    QueueRow { nodes: String::new(), start, ..row(job, SlurmState::Pending, "Resources") }
}

#[test]
fn a_waiting_job_has_the_schedulers_estimate_until_it_starts() {
    let seen = |job: &Job, row: &QueueRow| {
        see(job, &Observation { queue: Some(row), queue_answered: true, ..Observation::default() }, 10)
    };
    let job = submitted_job();
    let next = seen(&job, &waiting(&job, Some(3600))).unwrap().job;
    assert_eq!(next.run.queued_since, Some(T0 + TimeDelta::seconds(1)));
    assert_eq!(next.run.estimated_start, Some(T0 + TimeDelta::seconds(3600)));
    assert!(seen(&next, &waiting(&next, Some(3650))).is_none(), "an estimate that moves a little is news");
    let later = seen(&next, &waiting(&next, Some(9000))).unwrap().job;
    assert_eq!(later.run.estimated_start, Some(T0 + TimeDelta::seconds(9000)));
    let started = queued(&later, SlurmState::Running, "None").unwrap().job;
    assert_eq!(
        (started.run.estimated_start, started.run.queued_since),
        (None, Some(T0 + TimeDelta::seconds(1)))
    );
}

#[test]
fn a_canceled_job_stays_canceling_until_its_end_is_seen() {
    let job = Job { desired: DesiredState::Cancel, status: Status::Canceling, ..submitted_job() };
    let next = queued(&job, SlurmState::Running, "None").unwrap();
    assert_eq!(next.job.status, Status::Canceling);
}

#[test]
fn a_silent_scheduler_changes_nothing_however_long_it_is_silent() {
    let job = submitted_job();
    assert!(see(&job, &Observation::default(), 1_000_000).is_none());
}

#[test]
fn a_row_with_our_id_and_another_name_is_another_job() {
    let job = submitted_job();
    let stranger = QueueRow { name: "somebody-else".to_owned(), ..row(&job, SlurmState::Failed, "None") };
    let seen = Observation {
        queue: Some(&stranger),
        queue_answered: true,
        records: Records::Answered,
        ..Observation::default()
    };
    let next = see(&job, &seen, 10).unwrap();
    assert_eq!(next.job.phase, Phase::InQueue, "only missing, not failed");
    assert!(next.job.run.missing_since.is_some());
}

#[test]
fn accounting_says_how_a_vanished_job_ended() {
    let job = submitted_job();
    let account = AccountingRow {
        id: SlurmJobId::new(7).unwrap(),
        state: SlurmState::Failed,
        exit_code: Some(slurm::ExitCode { code: 3, signal: 0 }),
        reason: "NonZeroExitCode".to_owned(),
        start: Some(1),
        end: Some(2),
        nodes: "node01".to_owned(),
        name: job.attempt.as_ref().unwrap().token.to_string(),
        canceled_by: None,
        before: None,
    };
    let seen = Observation { queue_answered: true, accounting: Some(&account), ..Observation::default() };
    let next = see(&job, &seen, 10).unwrap();
    assert!(next.step_due);
    assert_eq!(next.job.run.exit.unwrap().code, 3);
    assert_eq!(next.job.source, Source::Sacct);
}

#[test]
fn the_end_of_a_run_that_may_have_been_put_back_counts_once_the_job_stays_away() {
    let job = submitted_job();
    let account = AccountingRow {
        id: SlurmJobId::new(7).unwrap(),
        state: SlurmState::NodeFail,
        exit_code: None,
        reason: "None".to_owned(),
        start: Some(1),
        end: Some(2),
        nodes: "node01".to_owned(),
        name: job.attempt.as_ref().unwrap().token.to_string(),
        canceled_by: None,
        before: None,
    };
    let seen = Observation { queue_answered: true, accounting: Some(&account), ..Observation::default() };
    let waiting = see(&job, &seen, 10).unwrap().job;
    assert_eq!((waiting.phase, waiting.run.missing_since.is_some()), (Phase::InQueue, true));
    assert!(see(&waiting, &seen, 12).is_none());
    assert_eq!(see(&waiting, &seen, 60 * 60).unwrap().job.phase, Phase::Finishing);
}

#[test]
fn the_end_before_a_requeue_is_not_that_of_a_job_which_the_controller_has_forgotten_since() {
    let mut waiting = queued(&submitted_job(), SlurmState::Pending, "BeginTime").unwrap().job;
    let mut record = launches::record(&waiting, SlurmState::Preempted);
    for (queued_since, state) in [(1, Some(SlurmState::Preempted)), (2, None), (3, None)] {
        waiting.run.queued_since = DateTime::from_timestamp(queued_since, 0);
        record.end = Some(2);
        let seen = Observation {
            queue_answered: true,
            accounting: Some(&record),
            records: Records::Answered,
            ..Observation::default()
        };
        let missing = see(&waiting, &seen, 10).unwrap().job;
        let ended = see(&missing, &seen, 60 * 60).unwrap().job;
        assert_eq!((ended.phase, ended.run.state), (Phase::Finishing, state), "queued at {queued_since}");
    }
}

#[test]
fn a_job_that_the_queue_has_lost_and_accounting_has_wait_for_ever_is_lost() {
    let job = submitted_job();
    let runaway = launches::record(&job, SlurmState::Pending);
    let seen = Observation {
        queue_answered: true,
        accounting: Some(&runaway),
        records: Records::Answered,
        ..Observation::default()
    };
    let waiting = see(&job, &seen, 10).unwrap().job;
    assert_eq!((waiting.phase, waiting.run.missing_since.is_some()), (Phase::InQueue, true));
    assert!(see(&waiting, &seen, 300).is_none(), "accounting may be behind");
    let lost = see(&waiting, &seen, 310).unwrap().job;
    assert_eq!((lost.phase, lost.run.state), (Phase::Finishing, None));
}

#[test]
fn the_exit_marker_speaks_when_accounting_does_not() {
    let job = submitted_job();
    let exit = ExitRecord { slurm_id: SlurmJobId::new(7).unwrap(), restart: 0, code: 0, at: 5 };
    let markers = Markers { exit: Some(exit), ..Markers::default() };
    let seen = Observation { queue_answered: true, markers: Some(&markers), ..Observation::default() };
    let next = see(&job, &seen, 10).unwrap();
    assert_eq!((next.job.phase, next.job.source), (Phase::Finishing, Source::Marker));
}

#[test]
fn the_exit_marker_of_another_slurm_job_is_not_ours() {
    let job = submitted_job();
    let exit = ExitRecord { slurm_id: SlurmJobId::new(6).unwrap(), restart: 0, code: 0, at: 5 };
    let markers = Markers { exit: Some(exit), ..Markers::default() };
    let seen = Observation {
        queue_answered: true,
        records: Records::Answered,
        markers: Some(&markers),
        ..Observation::default()
    };
    assert_eq!(see(&job, &seen, 10).unwrap().job.phase, Phase::InQueue);
}

#[test]
fn a_job_that_everybody_has_lost_is_given_up_only_after_a_continuous_absence() {
    let gone = Observation { queue_answered: true, records: Records::Answered, ..Observation::default() };
    let missing = see(&submitted_job(), &gone, 0).unwrap().job;
    assert!(see(&missing, &gone, 299).is_none());
    assert_eq!(see(&missing, &gone, 300).unwrap().job.phase, Phase::Finishing);

    let back = queued(&missing, SlurmState::Running, "None").unwrap().job;
    assert_eq!(back.run.missing_since, None, "one sight of it starts the absence again");
}

#[test]
fn status_lines_move_the_progress_and_the_cursor_past_complete_lines_only() {
    let job = submitted_job();
    let chunk = StatusChunk {
        key: String::new(),
        path: "/lustre/r/status.json".parse().unwrap(),
        inode: 9,
        size: 55,
        written_at: 0,
        note: None,
        start_offset: 0,
        skipped: 0,
        before: Vec::new(),
        bytes: b"{\"status\":\"RUNNING\",\"epoch\":2,\"max_epoch\":4}\n{\"sta".to_vec(),
        restarted: false,
        complete: true,
    };
    let row = row(&job, SlurmState::Running, "None");
    let chunks = [chunk];
    let seen =
        Observation { queue: Some(&row), queue_answered: true, status: &chunks, ..Observation::default() };
    let next = see(&job, &seen, 10).unwrap().job;
    assert_eq!(next.run.progress.percent, Some(50));
    assert_eq!((next.run.status.cursors()[0].offset, next.run.status.events().len()), (45, 1));
    assert_eq!(next.message, "Epoch 2 of 4 on node01.");
}

#[test]
fn accounting_that_does_not_answer_proves_no_absence() {
    let silent = Observation { queue_answered: true, ..Observation::default() };
    assert!(see(&submitted_job(), &silent, 1_000_000).is_none());
}

#[test_case(Records::Answered, 1, DesiredState::Run => None ; "accounting has forgotten it, too")]
#[test_case(Records::Off, 0, DesiredState::Run => Some(SlurmState::Completed) ; "there is none, and it ended well")]
#[test_case(Records::Off, 1, DesiredState::Run => Some(SlurmState::Failed) ; "there is none, and it failed")]
#[test_case(Records::Unknown, 0, DesiredState::Run => Some(SlurmState::Completed) ; "accounting is away, and it ended well")]
#[test_case(Records::Unknown, 1, DesiredState::Run => None ; "accounting is away, and would tell whether Slurm has lost it")]
#[test_case(Records::Unknown, 143, DesiredState::Run => None ; "something has ended it")]
#[test_case(Records::Off, 1, DesiredState::Cancel => None ; "its owner has")]
fn of_what_the_queue_has_forgotten_the_mark_tells_the_state(
    records: Records,
    code: u8,
    desired: DesiredState,
) -> Option<SlurmState> {
    let running = queued(&submitted_job(), SlurmState::Running, "None").unwrap().job;
    let exit = ExitRecord { slurm_id: SlurmJobId::new(7).unwrap(), restart: 0, code, at: 5 };
    let markers = Markers { exit: Some(exit), ..Markers::default() };
    let seen =
        Observation { queue_answered: true, markers: Some(&markers), records, ..Observation::default() };
    let next = see(&Job { desired, ..running }, &seen, 10).unwrap().job;
    next.run.state
}

#[test_case(999_999_999_999 ; "year 33658")]
#[test_case(-5 ; "before 1970")]
fn a_clock_that_cannot_be_right_is_not_believed(at: i64) {
    let exit = ExitRecord { slurm_id: SlurmJobId::new(7).unwrap(), restart: 0, code: 0, at };
    let markers = Markers { exit: Some(exit), ..Markers::default() };
    let seen = Observation { queue_answered: true, markers: Some(&markers), ..Observation::default() };
    let next = see(&submitted_job(), &seen, 10).unwrap().job;
    assert_eq!(next.run.ended_at, None);
}

#[test]
fn a_job_that_outlives_its_last_word_needs_a_step() {
    let mut running = queued(&submitted_job(), SlurmState::Running, "None").unwrap().job;
    let row = row(&running, SlurmState::Running, "None");
    let seen = Observation { queue: Some(&row), queue_answered: true, ..Observation::default() };
    let step_due = |running: &Job| see(running, &seen, 130).is_some_and(|next| next.step_due);
    let started_at = running.run.started_at.unwrap();
    running.run.progress.final_status_at = Some(started_at);
    assert!(step_due(&running));
    running.run.progress.final_status_at = Some(started_at - TimeDelta::seconds(31));
    assert!(!step_due(&running), "an execution before this one has said so");
    let mut waiting = running.run;
    (waiting.state, waiting.started_at) = (Some(SlurmState::Pending), None);
    assert_eq!(released_at(&waiting, &Graces::default()), None, "it has no nodes");
}

#[test]
fn a_running_job_says_which_services_load_and_how_far_it_has_come() {
    let mut job = submitted_job();
    job.spec.progress = serde_json::from_str(r#"{"path": "progress", "total": 200}"#).unwrap();
    let slurm_id = job.attempt.as_ref().unwrap().slurm_id.unwrap();
    let model = remote::WaitingService {
        name: "model".parse().unwrap(),
        state: remote::WaitingState::Starting { since: 786, limit: 3600 },
    };
    let marker = |waiting| Some(remote::ServicesMarker { slurm_id, at: 1000, waiting });
    let row = row(&job, SlurmState::Running, "None");
    let after = |job: &Job, reports: &remote::Reports| {
        let seen = Observation {
            queue: Some(&row),
            queue_answered: true,
            reports: Some(reports),
            ..Observation::default()
        };
        see(job, &seen, 0).map_or_else(|| job.clone(), |next| next.job)
    };
    let loading = after(
        &job,
        &remote::Reports { services: marker(vec![model]), progress: Some("0".to_owned()), usage: None },
    );
    assert!(loading.message.ends_with(". model: loading, 214 s of 3600."), "{}", loading.message);
    let unread = after(&loading, &remote::Reports::default());
    assert_eq!(unread.message, loading.message, "what could not be read changes nothing");
    let evaluating = after(
        &loading,
        &remote::Reports { services: marker(vec![]), progress: Some("37".to_owned()), usage: None },
    );
    assert!(evaluating.message.starts_with("37 of 200 on "), "{}", evaluating.message);
    assert_eq!(evaluating.run.progress.percent, Some(18));
}

#[test]
fn a_job_without_a_sign_of_life_needs_a_step_and_says_why() {
    let mut job = submitted_job();
    job.spec.timeout_minutes = std::num::NonZeroU32::new(5);
    let signs = SignsOfLife { files: 1, bytes: 1, newest: 1 };
    let row = row(&job, SlurmState::Running, "None");
    let seen = Observation {
        queue: Some(&row),
        queue_answered: true,
        signs_of_life: Some(&signs),
        ..Observation::default()
    };
    let watched = see(&job, &seen, 0).unwrap().job;
    let doomed = see(&watched, &seen, 300).unwrap();
    assert!(doomed.step_due && doomed.job.message.ends_with("Ending the job."), "{}", doomed.job.message);
    assert_eq!(crate::plan(&doomed.job, &Graces::default(), T0), crate::Step::Cancel);
    assert_eq!(
        queued(&doomed.job, SlurmState::Pending, "None").unwrap().job.run.kill_reason,
        None,
        "another run"
    );
}
