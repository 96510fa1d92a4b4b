//! The next state of a run, from what a poll observed. A poll that failed is no observation and never gets here.

mod launches;
mod vanished;

use chrono::TimeDelta;
use remote::{Markers, UsageMarker};
use slurm::{AccountingRow, QueueRow, SlurmState, Stage, timestamp};

use crate::{
    clock::Timestamp,
    job::{
        run::Run,
        status::{Phase, Source, Status},
        stored::{DesiredState, Job},
    },
    progress::usage::Usage,
    run::{
        activity,
        evidence::{Observation, is_of_this_end},
        exclusion::relax_exclusions,
        graces::Graces,
        idle,
        pending::{estimate_holds_until, estimated_start},
        plan::released_at,
        reports,
        status_lines::absorb_status,
        task::Task,
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

/// The job after an observation of its run; `None` if nothing changed.
pub fn observe(job: &Job, seen: &Observation<'_>, graces: &Graces, now: Timestamp) -> Option<ObservedChange> {
    if !matches!(job.phase, Phase::InQueue | Phase::Running | Phase::Suspended) {
        return None;
    }
    let (run, started_at) = observe_run(&job.run, &Task::of(job)?, seen, graces, now);
    let is_doomed = run.kill_reason.is_some() && job.run.kill_reason.is_none();
    let mut next = Job { run, started_at: job.started_at.or(started_at), ..job.clone() };
    next.summarize(now);
    let pauses = pause_if_idle(&mut next);
    let relaxed = relax_exclusions(&next, &graces.retry, now);
    if let Some(relaxed) = &relaxed {
        next.message = relaxed.announced();
    }
    let outlives = next.phase == Phase::Running
        && next.run.kill_reason.is_none()
        && released_at(&next.run, graces).is_some_and(|at| at <= now);
    if next == *job && !outlives {
        return None;
    }
    next.observed_at = Some(now);
    let was_requeued = next.has_unexplained_requeue() && !job.has_unexplained_requeue();
    let step_due = outlives
        || is_doomed
        || pauses
        || was_requeued
        || relaxed.is_some()
        || next.phase == Phase::Finishing;
    Some(ObservedChange { job: next, step_due })
}

/// Pauses a job whose GPUs have been idle for too long, as its owner would; earlier, its message warns.
fn pause_if_idle(job: &mut Job) -> bool {
    let policy = job.spec.idle_policy.as_ref();
    if job.phase != Phase::Running || job.desired != DesiredState::Run || job.run.kill_reason.is_some() {
        return false;
    }
    let pauses = idle::pauses(&job.run, policy).filter(|_| job.spec.array.is_none());
    if let Some(why) = &pauses {
        (job.desired, job.status) = (DesiredState::Pause, Status::Pausing);
        job.message.clone_from(why);
    } else if let Some(warning) = idle::warning(&job.run, policy) {
        job.message = format!("{} {warning}", job.message);
    }
    pauses.is_some()
}

/// The run after an observation, and when it started. That may be the start of an execution before the present one.
pub(crate) fn observe_run(
    known: &Run,
    task: &Task<'_>,
    seen: &Observation<'_>,
    graces: &Graces,
    now: Timestamp,
) -> (Run, Option<Timestamp>) {
    let mut run = known.clone();
    let seen = &seen.named(task.attempt.token.as_str());
    let row = seen.queue.map(|row| reclassified(known, task, row, seen));
    let row = row.as_deref();
    begin_again_if_requeued(known, &mut run, row, seen);
    let requeues = run.requeues;
    absorb_status(&mut run, task, seen.status, false, now);
    let has_unseen_run = run.requeues != requeues;
    match row {
        Some(row) => {
            let record = seen.accounting.filter(|record| is_of_this_end(record, row));
            if record.is_some() || !accounting_decides(task, row, seen, now) {
                in_queue(&mut run, row, had_nodes(&row.nodes, seen), now);
                record_exit(&mut run, row, record);
            }
        }
        None if seen.queue_answered => vanished(&mut run, task, seen, graces, now),
        None => {}
    }
    let started_at = run.started_at;
    if has_unseen_run && !run.is_over {
        // The poll read the queue before the files: its times may be those of the execution before.
        run.started_at = None;
        run.queued_since = None;
    }
    if let Some(seen) = seen.reports.filter(|_| run.phase() == Phase::Running) {
        reports::absorb(&mut run.progress, seen, task.progress, task.attempt.slurm_id);
        let of_run = |marker: &&UsageMarker| {
            Some(marker.slurm_id) == task.attempt.slurm_id && marker.restart == run.requeues
        };
        if let Some(marker) = seen.usage.as_ref().filter(of_run) {
            run.usage = Some(Usage::absorb(run.usage.as_ref(), marker, task.idle_policy));
        }
    }
    idle::watch(&mut run, task);
    activity::watch(&mut run, task, seen.signs_of_life, seen.unreachable_for, now);
    (run, started_at)
}

/// Starts over if Slurm has requeued the run since the last observation, and records when it started: this time tells
/// which execution has written the status files.
fn begin_again_if_requeued(known: &Run, run: &mut Run, row: Option<&QueueRow>, seen: &Observation<'_>) {
    let ended = seen.accounting.filter(|record| seen.queue_answered && record.state.is_final());
    let reported =
        row.map(|row| (&row.state, row.start)).or(ended.map(|record| (&record.state, record.start)));
    let Some((state, start)) = reported else { return };
    if *state == SlurmState::Completing {
        // No run begins like this. If Slurm has requeued the one that ends, it shows the time of that as the start.
        return;
    }
    let came_and_went = row.is_some_and(|row| was_queued_again(known, row));
    if came_and_went || was_started_again(known, state, timestamp(start)) {
        run.begin_again();
        run.started_at = None;
        run.requeues = run.requeues.saturating_add(1);
        run.waits_again = state.is_waiting();
        run.queued_since = row.and_then(|row| timestamp(row.submit));
    }
    if *state == SlurmState::Running {
        run.started(timestamp(start));
    }
}

/// Whether Slurm has requeued the run since it was last observed running: it is pending again, has another start time, or
/// was canceled before it ran again.
fn was_started_again(known: &Run, state: &SlurmState, start: Option<Timestamp>) -> bool {
    // Accounting and the queue may round a time differently.
    const ROUNDING: TimeDelta = TimeDelta::seconds(1);
    let Some(before) = known.started_at else { return false };
    match state.stage() {
        Stage::Waiting => true,
        Stage::Unclear => false,
        Stage::Running | Stage::Suspended | Stage::Final => {
            start.map_or(*state == SlurmState::Cancelled, |start| start - before > ROUNDING)
        }
    }
}

/// Whether Slurm has requeued the run although no poll observed it running: a requeue sets a new submit time.
fn was_queued_again(known: &Run, row: &QueueRow) -> bool {
    let times = known.queued_since.filter(|_| known.started_at.is_none()).zip(timestamp(row.submit));
    times.is_some_and(|(before, submit)| submit > before) && row.state.stage() != Stage::Unclear
}

/// Whether accounting will soon report what the queue does not: the signal that ended the run (22.05), its exit code if
/// it left no exit record, or who canceled it.
fn accounting_decides(task: &Task<'_>, row: &QueueRow, seen: &Observation<'_>, now: Timestamp) -> bool {
    let how =
        row.state == SlurmState::Failed && (row.reason == "JobLaunchFailure" || !seen.has_exit_record(row));
    let by_whom = row.state == SlurmState::Cancelled && task.desired == DesiredState::Run;
    (how || by_whom) && seen.awaits_accounting(row, now)
}

/// Whether a job that has ended was given nodes. Of one that was canceled in the queue, the start that Slurm tells is the time of the
/// cancellation.
pub(super) fn had_nodes(nodes: &str, seen: &Observation<'_>) -> bool {
    let has_begun = |markers: &Markers| markers.run_claim.is_some() || markers.started.is_some();
    !nodes.is_empty() || seen.markers.is_some_and(has_begun)
}

fn in_queue(run: &mut Run, row: &QueueRow, had_nodes: bool, now: Timestamp) {
    let stage = row.state.stage();
    if stage == Stage::Unclear {
        return;
    }
    run.missing_since = None;
    run.source = Some(Source::Squeue);
    let known_estimate = run.estimated_start.take();
    match stage {
        Stage::Waiting => run.estimated_start = estimated_start(known_estimate, timestamp(row.start), now),
        Stage::Running => run.started(timestamp(row.start)),
        Stage::Final => {
            run.started(timestamp(row.start).filter(|_| had_nodes));
            run.finish(Source::Squeue, timestamp(row.end), now);
        }
        Stage::Suspended | Stage::Unclear => {}
    }
    run.state = Some(row.state.clone());
    run.reason = Some(row.reason.clone());
    run.nodes = (!row.nodes.is_empty()).then(|| row.nodes.clone()).or(run.nodes.take());
    run.partition = Some(row.partition.clone());
    run.queued_since = timestamp(row.submit).or(run.queued_since);
}

/// Records how the script ended: by a signal in the queue's row (24.11), or as accounting reports it in the same poll.
fn record_exit(run: &mut Run, row: &QueueRow, record: Option<&AccountingRow>) {
    if row.state.is_final() {
        let exit = row.raised_signal().or(record.and_then(|record| record.exit_code));
        run.exit = exit.filter(|exit| !exit.is_success()).or(run.exit);
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
    estimate_holds_until(job.run.estimated_start, timestamp(row.start), now)
}

#[cfg(test)]
mod tests;
