//! From what a poll saw to the job's next state. Trouble on the way to the cluster never reaches this file:
//! a poll that was not answered properly is no observation.

mod launches;
mod news;
mod quiet;
mod status_lines;
mod vanished;

use chrono::{DateTime, TimeDelta};
use remote::{Markers, SignsOfLife, StatusChunk};
use slurm::{AccountingRow, QueueRow, SlurmState};

use crate::{
    clock::Timestamp,
    job::{
        status::{Phase, Source, Status},
        stored::{DesiredState, Job},
    },
    progress::status_file::StatusWord,
    run::{
        activity,
        exclusion::relax_exclusions,
        pending::{estimated_start, pending_message},
        retry::RetryTerms,
    },
};

use launches::{as_told, is_to_be_told};
pub(crate) use launches::{has_never_started, is_awaited, is_marked, is_of_this_end};
use news::differs;
pub use quiet::quiet_until;
pub(crate) use status_lines::{absorb_rest, absorb_status, is_held_back};
use vanished::vanished;

/// How long the truth may be late before its absence counts.
#[derive(Debug, Clone, Copy)]
pub struct Graces {
    /// For a job that neither squeue nor accounting knows, without interruption.
    pub missing: TimeDelta,
    /// For a job's last words (its exit marker, the last line of its `status.json`) to become visible on the
    /// login host.
    pub finish: TimeDelta,
    /// For a job that has said SUCCESS or FAILURE to end by itself, before its allocation is freed.
    pub release: TimeDelta,
    pub retry: RetryTerms,
}

impl Default for Graces {
    fn default() -> Self {
        // A shared file system may show a file a minute late, and sacct lags by seconds when it is busy.
        Self {
            missing: TimeDelta::minutes(5),
            finish: TimeDelta::seconds(60),
            release: TimeDelta::minutes(2),
            retry: RetryTerms::default(),
        }
    }
}

/// What one poll saw of one job.
#[derive(Debug, Clone, Copy, Default)]
pub struct Observation<'a> {
    pub queue: Option<&'a QueueRow>,
    /// Whether squeue answered properly, so that a missing row means something.
    pub queue_answered: bool,
    pub accounting: Option<&'a AccountingRow>,
    /// Whether accounting answered, so that a missing record means something.
    pub records: Records,
    pub markers: Option<&'a Markers>,
    pub status: &'a [StatusChunk],
    /// How much it has written, if that was asked and could be seen.
    pub signs_of_life: Option<&'a SignsOfLife>,
    /// How long in all the cluster could not be heard so far.
    pub unreachable_for: TimeDelta,
}

/// What there is of accounting.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Records {
    /// It was not asked, or did not answer: nothing follows.
    #[default]
    Unknown,
    Answered,
    /// The cluster keeps none: what is not there never will be.
    Off,
}

/// A job that a poll changed.
#[derive(Debug, Clone)]
pub struct Next {
    pub job: Job,
    /// Slurm is through with the job: a step has to read its last words now.
    pub step_due: bool,
}

/// The job after a observation; nothing when it saw nothing new.
pub fn observe(job: &Job, seen: &Observation<'_>, graces: &Graces, now: Timestamp) -> Option<Next> {
    if !matches!(job.phase, Phase::InQueue | Phase::Running | Phase::Suspended) {
        return None;
    }
    let mut next = job.clone();
    let ours = |name: &str| job.attempt.as_ref().is_some_and(|attempt| attempt.token.as_str() == name);
    // Slurm starts its ids again after a reset of the controller: a row is ours only with our name on it.
    let accounting = seen.accounting.filter(|record| ours(&record.name));
    let seen = &Observation { accounting, ..*seen };
    let row = seen.queue.filter(|row| ours(&row.name)).map(|row| as_told(job, row, accounting, seen.markers));
    let row = row.as_deref();
    let ended = accounting.filter(|record| seen.queue_answered && record.state.is_final());
    let told = row.map(|row| (&row.state, row.start)).or(ended.map(|record| (&record.state, record.start)));
    let came_and_went = row.is_some_and(|row| was_queued_again(job, row));
    if let Some((state, start)) = told
        && (came_and_went || is_another_run(job, state, at(start)))
    {
        next.begin_run();
        if let Some(attempt) = &mut next.attempt {
            attempt.started_at = None;
            attempt.requeues = attempt.requeues.saturating_add(1);
            attempt.requeue_unexplained = is_waiting(state);
            attempt.queued_since = row.and_then(|row| at(row.submit));
        }
    }
    if let Some((_, start)) = told.filter(|(state, _)| **state == SlurmState::Running) {
        // Which run has written what is in the files is told by when it began.
        started(&mut next, at(start));
    }
    let runs_seen = |job: &Job| job.attempt.as_ref().map(|attempt| attempt.requeues);
    let known = runs_seen(&next);
    absorb_status(&mut next, seen.status, false, now);
    let unseen = runs_seen(&next) != known;
    match row {
        Some(row) => {
            let record = accounting.filter(|record| is_of_this_end(record, row));
            if record.is_some() || !is_to_be_told(job, row, seen, now) {
                in_queue(&mut next, row, now);
                exit_told(&mut next, row, record);
            }
        }
        None if seen.queue_answered => {
            vanished(&mut next, seen, graces, now);
        }
        None => {}
    }
    if let Some(attempt) = next.attempt.as_mut().filter(|_| unseen && next.phase != Phase::Finishing) {
        // The queue was asked before the files were read: the times that are known may be those of the run before.
        attempt.started_at = None;
        attempt.queued_since = None;
    }
    activity::watch(&mut next, seen.signs_of_life, seen.unreachable_for, now);
    let doomed = next.kill_reason.is_some() && job.kill_reason.is_none();
    if let Some(why) = next
        .kill_reason
        .as_ref()
        .filter(|_| next.phase == Phase::Running && next.desired == DesiredState::Run)
    {
        next.message = format!("{why} Ending the job.");
    }
    let relief = relax_exclusions(&next, &graces.retry, now);
    if let Some(relief) = &relief {
        next.message = relief.announced();
    }
    let over = outlives_its_final_status(&next, graces, now) && next.phase == Phase::Running;
    if !differs(job, &next) && !over {
        return None;
    }
    next.observed_at = Some(now);
    let requeued = next.attempt.as_ref().is_some_and(|attempt| attempt.requeue_unexplained)
        && job.attempt.as_ref().is_some_and(|attempt| !attempt.requeue_unexplained);
    let step_due = over || doomed || requeued || relief.is_some() || next.phase == Phase::Finishing;
    Some(Next { job: next, step_due })
}

/// Whether the job has said SUCCESS or FAILURE and holds its nodes all the same: its allocation is to be freed.
pub(crate) fn outlives_its_final_status(job: &Job, graces: &Graces, now: Timestamp) -> bool {
    job.progress.final_status_at.is_some_and(|at| now - at >= graces.release)
}

/// Whether Slurm has requeued the job since it was last seen to run: it waits again, runs since another time, or was
/// canceled before it ran again.
fn is_another_run(job: &Job, state: &SlurmState, start: Option<Timestamp>) -> bool {
    // Accounting and the queue may round a time differently.
    const ROUNDING: TimeDelta = TimeDelta::seconds(1);
    let Some(known) = job.attempt.as_ref().and_then(|attempt| attempt.started_at) else { return false };
    if is_waiting(state) {
        return true;
    }
    !matches!(state, SlurmState::UpdateDb | SlurmState::Unknown(_))
        && start.map_or(*state == SlurmState::Cancelled, |start| start - known > ROUNDING)
}

/// Whether Slurm has put the job back into its queue, of which nobody has seen that it ran: a requeue counts as a submission.
fn was_queued_again(job: &Job, row: &QueueRow) -> bool {
    let Some(attempt) = job.attempt.as_ref().filter(|attempt| attempt.started_at.is_none()) else {
        return false;
    };
    let later = attempt.queued_since.zip(at(row.submit)).is_some_and(|(known, submit)| submit > known);
    later && !matches!(row.state, SlurmState::UpdateDb | SlurmState::Unknown(_))
}

pub(crate) fn is_waiting(state: &SlurmState) -> bool {
    matches!(
        state,
        SlurmState::Pending
            | SlurmState::Configuring
            | SlurmState::Requeued
            | SlurmState::RequeueHold
            | SlurmState::RequeueFed
            | SlurmState::ResvDelHold
            | SlurmState::SpecialExit
            | SlurmState::PowerUpNode
    )
}

fn in_queue(job: &mut Job, row: &QueueRow, now: Timestamp) {
    // A word we do not know, or that says nothing about the job's life, changes nothing.
    if matches!(row.state, SlurmState::UpdateDb | SlurmState::Unknown(_)) {
        return;
    }
    job.missing_since = None;
    job.source = Source::Squeue;
    let told_before = job.attempt.as_ref().and_then(|attempt| attempt.estimated_start);
    let waiting = |job: &mut Job| {
        show(job, Status::Pending, Phase::InQueue, pending_message(&row.state, &row.reason));
        job.pending_reason = Some(row.reason.clone());
        if let Some(attempt) = &mut job.attempt {
            attempt.estimated_start = estimated_start(told_before, at(row.start), now);
        }
    };
    match &row.state {
        SlurmState::Pending
        | SlurmState::Configuring
        | SlurmState::Requeued
        | SlurmState::RequeueHold
        | SlurmState::RequeueFed
        | SlurmState::ResvDelHold
        | SlurmState::SpecialExit
        | SlurmState::PowerUpNode => waiting(job),
        SlurmState::Running
        | SlurmState::Completing
        | SlurmState::Resizing
        | SlurmState::Signaling
        | SlurmState::StageOut => {
            started(job, at(row.start));
            show(job, Status::Running, Phase::Running, running_message(job, &row.nodes));
        }
        SlurmState::Suspended | SlurmState::Stopped => {
            show(
                job,
                Status::Paused,
                Phase::Suspended,
                "Slurm has suspended the job; it may go on later.".to_owned(),
            );
        }
        SlurmState::UpdateDb | SlurmState::Unknown(_) => {}
        SlurmState::Completed
        | SlurmState::Failed
        | SlurmState::Timeout
        | SlurmState::Cancelled
        | SlurmState::NodeFail
        | SlurmState::BootFail
        | SlurmState::Deadline
        | SlurmState::OutOfMemory
        | SlurmState::Preempted
        | SlurmState::Revoked
        | SlurmState::LaunchFailed
        | SlurmState::ReconfigFail => {
            started(job, at(row.start));
            finish(job, Source::Squeue, at(row.end), now);
        }
    }
    if let Some(attempt) = &mut job.attempt {
        attempt.slurm_state = Some(row.state.clone());
        attempt.reason = Some(row.reason.clone());
        attempt.nodes = (!row.nodes.is_empty()).then(|| row.nodes.clone()).or(attempt.nodes.take());
        attempt.partition = Some(row.partition.clone());
        attempt.queued_since = at(row.submit).or(attempt.queued_since);
    }
}

/// The job runs, since `start`.
fn started(job: &mut Job, start: Option<Timestamp>) {
    job.started_at = job.started_at.or(start);
    if let Some(attempt) = &mut job.attempt {
        attempt.requeue_unexplained = false;
        attempt.started_at = attempt.started_at.or(start);
    }
}

/// How the job's script ended: by a signal that the queue tells (24.11), or as accounting says, which was asked in the same poll.
fn exit_told(job: &mut Job, row: &QueueRow, record: Option<&AccountingRow>) {
    let told = row.raised_signal().or(record.and_then(|record| record.exit_code));
    if let Some(attempt) = job.attempt.as_mut().filter(|_| row.state.is_final()) {
        attempt.exit = told.filter(|exit| exit.code != 0 || exit.signal != 0).or(attempt.exit);
    }
}

fn show(job: &mut Job, status: Status, phase: Phase, message: String) {
    // Cancelling is the owner's wish and stays on show until the end is seen.
    job.status = match job.desired {
        DesiredState::Cancel | DesiredState::Delete => Status::Canceling,
        DesiredState::Pause => Status::Pausing,
        DesiredState::Run => status,
    };
    job.phase = phase;
    waits_no_more(job);
    if job.desired == DesiredState::Run {
        job.message = message;
    }
}

/// What was said of its wait does not hold any longer.
fn waits_no_more(job: &mut Job) {
    job.pending_reason = None;
    if let Some(attempt) = &mut job.attempt {
        attempt.estimated_start = None;
    }
}

fn finish(job: &mut Job, source: Source, ended_at: Option<Timestamp>, now: Timestamp) {
    job.phase = Phase::Finishing;
    waits_no_more(job);
    job.source = source;
    "Slurm is through with the job; reading its last words.".clone_into(&mut job.message);
    job.finishing_since = Some(now);
    if let Some(attempt) = &mut job.attempt {
        // The clock of a node may be ahead of ours; no job ends in the future.
        attempt.ended_at = ended_at.map(|at| at.min(now)).or(attempt.ended_at);
    }
}

fn running_message(job: &Job, nodes: &str) -> String {
    let progress = &job.progress;
    match (progress.final_status(), progress.epoch, progress.max_epoch) {
        (Some(StatusWord::Success | StatusWord::Failure), ..) => {
            "The job has said its last word; waiting for Slurm to end it.".to_owned()
        }
        (_, Some(epoch), Some(of)) => format!("Epoch {epoch} of {of} on {nodes}."),
        _ => format!("Running on {nodes}."),
    }
}

/// A time that the cluster told. What is no time of our age is a broken clock, or somebody's joke.
pub(crate) fn at(unix: Option<i64>) -> Option<Timestamp> {
    const YEAR_3000: i64 = 32_503_680_000;
    unix.filter(|seconds| (1..YEAR_3000).contains(seconds))
        .and_then(|seconds| DateTime::from_timestamp(seconds, 0))
}

#[cfg(test)]
mod tests;
