//! The next state of a job, from what a poll observed. A poll that failed is no observation and never gets here.

mod launches;
mod vanished;

use chrono::TimeDelta;
use slurm::{AccountingRow, QueueRow, SlurmState, Stage, timestamp};

use crate::{
    clock::Timestamp,
    job::{
        status::{Phase, Source, Status},
        stored::{DesiredState, Job},
    },
    progress::status_file::StatusWord,
    run::{
        activity,
        evidence::{Observation, is_of_this_end},
        exclusion::relax_exclusions,
        graces::Graces,
        pending::{estimate_holds_until, estimated_start, pending_message},
        plan::outlives_its_final_status,
        status_lines::absorb_status,
    },
};

use launches::reclassified;
use vanished::vanished;

/// A job that a poll changed.
#[derive(Debug, Clone)]
pub struct ObservedChange {
    pub job: Job,
    /// The job needs a step now: for instance, Slurm reports it finished.
    pub step_due: bool,
}

/// The job after an observation; `None` if nothing changed.
pub fn observe(job: &Job, seen: &Observation<'_>, graces: &Graces, now: Timestamp) -> Option<ObservedChange> {
    if !matches!(job.phase, Phase::InQueue | Phase::Running | Phase::Suspended) {
        return None;
    }
    let mut next = job.clone();
    let seen = &seen.named(job.attempt.as_ref()?.token.as_str());
    let row = seen.queue.map(|row| reclassified(job, row, seen));
    let row = row.as_deref();
    begin_requeued_run(job, &mut next, row, seen);
    let requeues = |job: &Job| job.attempt.as_ref().map(|attempt| attempt.requeues);
    let known = requeues(&next);
    absorb_status(&mut next, seen.status, false, now);
    let has_unseen_run = requeues(&next) != known;
    match row {
        Some(row) => {
            let record = seen.accounting.filter(|record| is_of_this_end(record, row));
            if record.is_some() || !accounting_decides(job, row, seen, now) {
                in_queue(&mut next, row, now);
                record_exit(&mut next, row, record);
            }
        }
        None if seen.queue_answered => vanished(&mut next, seen, graces, now),
        None => {}
    }
    if let Some(attempt) = next.attempt.as_mut().filter(|_| has_unseen_run && next.phase != Phase::Finishing)
    {
        // The poll read the queue before the files: its times may be those of the run before.
        attempt.started_at = None;
        attempt.queued_since = None;
    }
    activity::watch(&mut next, seen.signs_of_life, seen.unreachable_for, now);
    let is_doomed = next.kill_reason.is_some() && job.kill_reason.is_none();
    let runs = next.phase == Phase::Running;
    if let Some(why) = next.kill_reason.as_ref().filter(|_| runs && next.desired == DesiredState::Run) {
        next.message = format!("{why} Ending the job.");
    }
    let relaxed = relax_exclusions(&next, &graces.retry, now);
    if let Some(relaxed) = &relaxed {
        next.message = relaxed.announced();
    }
    let outlives = runs && outlives_its_final_status(&next, graces, now);
    if next == *job && !outlives {
        return None;
    }
    next.observed_at = Some(now);
    let unexplained = |job: &Job| job.attempt.as_ref().is_some_and(|attempt| attempt.requeue_unexplained);
    let was_requeued = unexplained(&next) && !unexplained(job);
    let step_due =
        outlives || is_doomed || was_requeued || relaxed.is_some() || next.phase == Phase::Finishing;
    Some(ObservedChange { job: next, step_due })
}

/// Starts another run if Slurm has requeued the job since the last observation, and records when the run started: this
/// time tells which run has written the status files.
fn begin_requeued_run(job: &Job, next: &mut Job, row: Option<&QueueRow>, seen: &Observation<'_>) {
    let ended = seen.accounting.filter(|record| seen.queue_answered && record.state.is_final());
    let reported =
        row.map(|row| (&row.state, row.start)).or(ended.map(|record| (&record.state, record.start)));
    let Some((state, start)) = reported else { return };
    let came_and_went = row.is_some_and(|row| was_queued_again(job, row));
    if came_and_went || is_another_run(job, state, timestamp(start)) {
        next.begin_run();
        if let Some(attempt) = &mut next.attempt {
            attempt.started_at = None;
            attempt.requeues = attempt.requeues.saturating_add(1);
            attempt.requeue_unexplained = state.is_waiting();
            attempt.queued_since = row.and_then(|row| timestamp(row.submit));
        }
    }
    if *state == SlurmState::Running {
        started(next, timestamp(start));
    }
}

/// Whether Slurm has requeued the job since it was last observed running: it is pending again, has another start time, or
/// was canceled before it ran again.
fn is_another_run(job: &Job, state: &SlurmState, start: Option<Timestamp>) -> bool {
    // Accounting and the queue may round a time differently.
    const ROUNDING: TimeDelta = TimeDelta::seconds(1);
    let Some(known) = job.attempt.as_ref().and_then(|attempt| attempt.started_at) else { return false };
    match state.stage() {
        Stage::Waiting => true,
        Stage::Unclear => false,
        Stage::Running | Stage::Suspended | Stage::Final => {
            start.map_or(*state == SlurmState::Cancelled, |start| start - known > ROUNDING)
        }
    }
}

/// Whether Slurm has requeued the job although no poll observed it running: a requeue sets a new submit time.
fn was_queued_again(job: &Job, row: &QueueRow) -> bool {
    let Some(attempt) = job.attempt.as_ref().filter(|attempt| attempt.started_at.is_none()) else {
        return false;
    };
    let times = attempt.queued_since.zip(timestamp(row.submit));
    times.is_some_and(|(known, submit)| submit > known) && row.state.stage() != Stage::Unclear
}

/// Whether accounting will soon report what the queue does not: the signal that ended the job (22.05), its exit code if
/// it left no exit record, or who canceled it.
fn accounting_decides(job: &Job, row: &QueueRow, seen: &Observation<'_>, now: Timestamp) -> bool {
    let how =
        row.state == SlurmState::Failed && (row.reason == "JobLaunchFailure" || !seen.has_exit_record(row));
    let by_whom = row.state == SlurmState::Cancelled && job.desired == DesiredState::Run;
    (how || by_whom) && seen.awaits_accounting(row, now)
}

fn in_queue(job: &mut Job, row: &QueueRow, now: Timestamp) {
    let stage = row.state.stage();
    if stage == Stage::Unclear {
        return;
    }
    job.missing_since = None;
    job.source = Source::Squeue;
    let known_estimate = job.attempt.as_ref().and_then(|attempt| attempt.estimated_start);
    match stage {
        Stage::Waiting => {
            show(job, Status::Pending, Phase::InQueue, pending_message(&row.state, &row.reason));
            job.pending_reason = Some(row.reason.clone());
            if let Some(attempt) = &mut job.attempt {
                attempt.estimated_start = estimated_start(known_estimate, timestamp(row.start), now);
            }
        }
        Stage::Running => {
            started(job, timestamp(row.start));
            show(job, Status::Running, Phase::Running, running_message(job, &row.nodes));
        }
        Stage::Suspended => {
            let message = "Slurm has suspended the job and may resume it later.".to_owned();
            show(job, Status::Paused, Phase::Suspended, message);
        }
        Stage::Final => {
            started(job, timestamp(row.start));
            finish(job, Source::Squeue, timestamp(row.end), now);
        }
        Stage::Unclear => {}
    }
    if let Some(attempt) = &mut job.attempt {
        attempt.slurm_state = Some(row.state.clone());
        attempt.reason = Some(row.reason.clone());
        attempt.nodes = (!row.nodes.is_empty()).then(|| row.nodes.clone()).or(attempt.nodes.take());
        attempt.partition = Some(row.partition.clone());
        attempt.queued_since = timestamp(row.submit).or(attempt.queued_since);
    }
}

/// The job is running, since `start`.
fn started(job: &mut Job, start: Option<Timestamp>) {
    job.started_at = job.started_at.or(start);
    if let Some(attempt) = &mut job.attempt {
        attempt.requeue_unexplained = false;
        attempt.started_at = attempt.started_at.or(start);
    }
}

/// Records how the job's script ended: by a signal in the queue's row (24.11), or as accounting reports it in the same
/// poll.
fn record_exit(job: &mut Job, row: &QueueRow, record: Option<&AccountingRow>) {
    let exit = row.raised_signal().or(record.and_then(|record| record.exit_code));
    if let Some(attempt) = job.attempt.as_mut().filter(|_| row.state.is_final()) {
        attempt.exit = exit.filter(|exit| !exit.is_success()).or(attempt.exit);
    }
}

fn show(job: &mut Job, status: Status, phase: Phase, message: String) {
    // A desired cancellation or pause stays visible until the job has ended.
    job.status = match job.desired {
        DesiredState::Cancel | DesiredState::Delete => Status::Canceling,
        DesiredState::Pause => Status::Pausing,
        DesiredState::Run => status,
    };
    job.phase = phase;
    clear_pending(job);
    if job.desired == DesiredState::Run {
        job.message = message;
    }
}

fn clear_pending(job: &mut Job) {
    job.pending_reason = None;
    if let Some(attempt) = &mut job.attempt {
        attempt.estimated_start = None;
    }
}

fn finish(job: &mut Job, source: Source, ended_at: Option<Timestamp>, now: Timestamp) {
    job.phase = Phase::Finishing;
    clear_pending(job);
    job.source = source;
    "Slurm reports the job finished; collecting its exit code and logs.".clone_into(&mut job.message);
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
            "The job has reported its final status; waiting for it to exit.".to_owned()
        }
        (_, Some(epoch), Some(of)) => format!("Epoch {epoch} of {of} on {nodes}."),
        _ => format!("Running on {nodes}."),
    }
}

/// Until when the same queue row alone does not change this version of the job, after [`observe`] has just returned
/// `None` for it. `None` if `observe` has to decide at each poll. It spares reading ten thousand pending jobs per poll.
pub fn unchanged_until(job: &Job, row: &QueueRow, now: Timestamp) -> Option<Timestamp> {
    let attempt = job.attempt.as_ref()?;
    // Exclusions of nodes expire.
    let ours = row.name == attempt.token.as_str();
    if !ours || job.phase != Phase::InQueue || !row.state.is_waiting() || !attempt.excluded.is_empty() {
        return None;
    }
    estimate_holds_until(attempt.estimated_start, timestamp(row.start), now)
}

#[cfg(test)]
mod tests;
