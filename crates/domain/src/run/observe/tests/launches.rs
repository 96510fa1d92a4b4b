//! What Slurm could not start, and who ended what it has started.

use remote::StartedMarker;
use slurm::PastRun;

use super::*;

pub(super) fn record(job: &Job, state: SlurmState) -> AccountingRow {
    AccountingRow {
        id: SlurmJobId::new(7).unwrap(),
        state,
        exit_code: None,
        reason: "None".to_owned(),
        start: Some(2),
        end: Some(100),
        nodes: "node01".to_owned(),
        name: job.attempt.as_ref().unwrap().token.to_string(),
        canceled_by: None,
        before: None,
    }
}

/// What the job has become once this was seen of it at second 101.
fn told(job: &Job, queue: &QueueRow, accounting: &AccountingRow) -> Option<Job> {
    let seen = Observation {
        queue: Some(queue),
        accounting: Some(accounting),
        queue_answered: true,
        ..Observation::default()
    };
    see(job, &seen, 101).map(|next| next.job)
}

fn state(job: Job) -> (Phase, Option<SlurmState>) {
    (job.phase, job.run.state)
}

const NOT_LAUNCHED: (Phase, Option<SlurmState>) = (Phase::Finishing, Some(SlurmState::LaunchFailed));

#[test]
fn a_job_that_slurm_could_not_start_and_holds_is_through_with_this_attempt() {
    let job = submitted_job();
    let held = row(&job, SlurmState::Pending, "launch failed requeued held");
    let seen = Observation { queue: Some(&held), queue_answered: true, ..Observation::default() };
    let next = see(&job, &seen, 10).unwrap();
    assert!(next.step_due);
    assert_eq!(next.job.phase, Phase::Finishing);
    assert_eq!(next.job.run.state, Some(SlurmState::LaunchFailed));
}

#[test]
fn a_hold_whose_reason_slurm_has_forgotten_is_known_by_the_run_before() {
    let job = submitted_job();
    let held = row(&job, SlurmState::Pending, "JobHeldAdmin");
    let run = |was_requeued: bool, end: i64| PastRun { was_requeued, start: Some(50), end: Some(end) };
    let after = |before: Option<PastRun>| {
        let record = AccountingRow { before, ..record(&job, SlurmState::Pending) };
        state(told(&job, &held, &record).unwrap())
    };
    assert_eq!(after(Some(run(true, 50))), NOT_LAUNCHED);
    let held_by_somebody = (Phase::InQueue, Some(SlurmState::Pending));
    assert_eq!(after(Some(run(true, 60))), held_by_somebody, "it ran, and was requeued and held");
    assert_eq!(after(Some(run(false, 50))), held_by_somebody);
    assert_eq!(after(None), held_by_somebody);
}

#[test]
fn a_hold_that_has_no_record_of_its_own_yet_is_known_by_the_last_run() {
    let job = submitted_job();
    let held = row(&job, SlurmState::Pending, "JobHeldAdmin");
    let requeued = AccountingRow { start: Some(100), ..record(&job, SlurmState::Requeued) };
    assert_eq!(state(told(&job, &held, &requeued).unwrap()), NOT_LAUNCHED);
}

/// Canceled at second 100.
fn canceled(job: &Job) -> QueueRow {
    QueueRow { end: Some(100), ..row(job, SlurmState::Cancelled, "None") }
}

#[test]
fn what_slurm_itself_has_canceled_was_not_launched() {
    let job = submitted_job();
    let by_nobody = record(&job, SlurmState::Cancelled);
    let by_somebody = AccountingRow { canceled_by: Some(0), ..by_nobody.clone() };
    let ended = (Phase::Finishing, Some(SlurmState::Cancelled));
    assert_eq!(state(told(&job, &canceled(&job), &by_nobody).unwrap()), NOT_LAUNCHED);
    assert_eq!(state(told(&job, &canceled(&job), &by_somebody).unwrap()), ended);
    let unwanted = Job { desired: DesiredState::Cancel, ..job };
    assert_eq!(state(told(&unwanted, &canceled(&unwanted), &by_nobody).unwrap()), ended, "it was to end");
}

/// What is told of a job that this user has canceled at second 100, so many seconds after its start, and that has left the
/// mark of its beginning at that second.
fn canceled_by(user: u32, lasted: i64, marked: Option<i64>) -> (Phase, Option<SlurmState>) {
    let job = submitted_job();
    let queue = QueueRow { start: Some(100 - lasted), ..canceled(&job) };
    let record =
        AccountingRow { start: queue.start, canceled_by: Some(user), ..record(&job, SlurmState::Cancelled) };
    let started =
        marked.map(|at| StartedMarker { slurm_id: queue.id, restart: 0, at, hostname: String::new() });
    let markers = started.map(|mark| Markers { started: Some(mark), ..Markers::default() });
    let seen = Observation {
        queue: Some(&queue),
        accounting: Some(&record),
        queue_answered: true,
        markers: markers.as_ref(),
        ..Observation::default()
    };
    state(see(&job, &seen, 101).unwrap().job)
}

#[test]
fn whom_a_node_ended_as_root_since_it_could_not_start_it_was_not_launched() {
    assert_eq!(canceled_by(0, 1, None), NOT_LAUNCHED);
    assert_eq!(canceled_by(0, 0, Some(80)), NOT_LAUNCHED, "the mark of a run that Slurm has forgotten");
    let ended = (Phase::Finishing, Some(SlurmState::Cancelled));
    assert_eq!(canceled_by(0, 1, Some(99)), ended, "an administrator who was quick");
    assert_eq!(canceled_by(0, 10, Some(80)), ended, "the clock of its node may be slow");
    assert_eq!(canceled_by(2001, 0, None), ended);
}

#[test]
fn a_controller_that_is_slow_may_end_it_seconds_later() {
    let mut known = submitted_job();
    let lasted = |job: &Job| {
        let queue = QueueRow { start: Some(94), ..canceled(job) };
        // Accounting has the start of the run before.
        let record =
            AccountingRow { start: Some(84), canceled_by: Some(0), ..record(job, SlurmState::Cancelled) };
        let mark = StartedMarker { slurm_id: queue.id, restart: 0, at: 85, hostname: String::new() };
        let markers = Markers { started: Some(mark), ..Markers::default() };
        let seen = Observation {
            queue: Some(&queue),
            accounting: Some(&record),
            queue_answered: true,
            markers: Some(&markers),
            ..Observation::default()
        };
        state(see(job, &seen, 101).unwrap().job)
    };
    assert_eq!(
        lasted(&known),
        (Phase::Finishing, Some(SlurmState::Cancelled)),
        "nobody knows of another run"
    );
    known.run.started_at = timestamp(Some(85));
    assert_eq!(lasted(&known), NOT_LAUNCHED, "it was seen to run before");
    (known.run.started_at, known.run.requeues) = (None, 1);
    assert_eq!(lasted(&known), NOT_LAUNCHED, "it was seen to wait again");
}

#[test]
fn the_same_is_known_of_a_job_that_has_left_the_queue() {
    let job = submitted_job();
    let ended = |record: &AccountingRow| {
        let seen = Observation { queue_answered: true, accounting: Some(record), ..Observation::default() };
        state(see(&job, &seen, 101).unwrap().job).1
    };
    let by_nobody = record(&job, SlurmState::Cancelled);
    assert_eq!(ended(&by_nobody), Some(SlurmState::LaunchFailed));
    let by_somebody = AccountingRow { canceled_by: Some(2001), ..by_nobody };
    assert_eq!(ended(&by_somebody), Some(SlurmState::Cancelled));
}

#[test]
fn nodes_that_only_the_queue_has_told_of_were_given_too() {
    let job = submitted_job();
    let late = AccountingRow { start: None, ..record(&job, SlurmState::Cancelled) };
    assert_eq!(state(told(&job, &canceled(&job), &late).unwrap()), NOT_LAUNCHED);
    let never = QueueRow { start: None, ..canceled(&job) };
    assert_eq!(state(told(&job, &never, &late).unwrap()), (Phase::Finishing, Some(SlurmState::Cancelled)));
}

#[test]
fn who_has_canceled_a_job_is_waited_for_and_not_for_long() {
    let job = submitted_job();
    let row = canceled(&job);
    let seen = Observation {
        queue: Some(&row),
        queue_answered: true,
        records: Records::Answered,
        ..Observation::default()
    };
    let ended = (Phase::Finishing, Some(SlurmState::Cancelled));
    let earlier = AccountingRow { end: Some(50), ..record(&job, SlurmState::Cancelled) };
    let behind = Observation { accounting: Some(&earlier), ..seen };
    assert!(see(&job, &behind, 101).is_none());
    assert_eq!(state(see(&job, &behind, 131).unwrap().job), ended);
    let runs = AccountingRow { end: None, ..record(&job, SlurmState::Running) };
    // Slurm gives an id again after a reset of its controller.
    let another = AccountingRow { name: "another".to_owned(), ..earlier.clone() };
    let off = Observation { records: Records::Off, ..seen };
    assert!(see(&job, &off, 101).is_none(), "as where there is one");
    assert_eq!(state(see(&job, &off, 131).unwrap().job), ended, "nobody will ever say");
    let silent = Observation { records: Records::Unknown, ..seen };
    assert!(see(&job, &silent, 100_000).is_none(), "nobody knows, as when the queue has forgotten it");
    for behind in [
        seen,
        Observation { accounting: Some(&runs), ..seen },
        Observation { accounting: Some(&another), ..seen },
    ] {
        assert!(see(&job, &behind, 131).is_none(), "it is away, and comes back");
        assert_eq!(state(see(&job, &behind, 281).unwrap().job), ended, "while the queue still shows it");
    }
    let unwanted = Job { desired: DesiredState::Cancel, ..job };
    assert_eq!(see(&unwanted, &seen, 101).unwrap().job.phase, Phase::Finishing, "we know who");
}

#[test]
fn the_code_of_a_script_that_has_left_no_mark_is_waited_for() {
    let job = submitted_job();
    let failed = QueueRow { end: Some(100), ..row(&job, SlurmState::Failed, "NonZeroExitCode") };
    let nothing = Markers::default();
    let exit = ExitRecord { slurm_id: failed.id, restart: 0, code: 3, at: 5 };
    let marked = Markers { exit: Some(exit), ..nothing.clone() };
    let seen = Observation { queue: Some(&failed), queue_answered: true, ..Observation::default() };
    let with = |markers| see(&job, &Observation { markers: Some(markers), ..seen }, 101);
    assert!(with(&nothing).is_none());
    assert_eq!(with(&marked).unwrap().job.phase, Phase::Finishing, "the mark says it");
    let exit_code = Some(ExitCode { code: 123, signal: 0 });
    let record = AccountingRow { exit_code, ..record(&job, SlurmState::Failed) };
    let next = told(&job, &failed, &record).unwrap();
    assert_eq!((next.phase, next.run.exit), (Phase::Finishing, exit_code));
}

#[test]
fn a_death_of_which_accounting_has_not_told_yet_is_waited_for_and_not_for_long() {
    let job = submitted_job();
    let mut failed = row(&job, SlurmState::Failed, "JobLaunchFailure");
    failed.end = Some(100);
    let seen = Observation {
        queue: Some(&failed),
        queue_answered: true,
        records: Records::Answered,
        ..Observation::default()
    };
    assert!(see(&job, &seen, 101).is_none());
    assert!(see(&job, &seen, 279).is_none(), "accounting may be away");
    assert_eq!(see(&job, &seen, 280).unwrap().job.phase, Phase::Finishing);
    let ahead = QueueRow { end: Some(500), ..failed.clone() };
    let wrong = Observation { queue: Some(&ahead), ..seen };
    assert_eq!(see(&job, &wrong, 101).unwrap().job.phase, Phase::Finishing, "a clock that is wrong");

    let exit_code = Some(ExitCode { code: 0, signal: 9 });
    let earlier = AccountingRow { exit_code, end: Some(50), ..record(&job, SlurmState::Failed) };
    assert!(see(&job, &Observation { accounting: Some(&earlier), ..seen }, 101).is_none());
    let record = AccountingRow { end: Some(100), ..earlier };
    let next = see(&job, &Observation { accounting: Some(&record), ..seen }, 101).unwrap().job;
    assert_eq!((next.phase, next.run.exit), (Phase::Finishing, record.exit_code));
}
