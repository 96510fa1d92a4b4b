//! The ways in which Slurm reports a failed launch. Most of them look like something else.

use std::borrow::Cow;

use remote::Markers;
use slurm::{AccountingRow, PastRun, QueueRow, SlurmState};

use crate::{
    job::{run::Run, stored::DesiredState},
    run::{
        evidence::{Observation, ROOT, has_never_started, is_of_this_end, took_no_time},
        task::Task,
    },
};

/// The row, reclassified as `LAUNCH_FAILED` if Slurm could not start the job.
///
/// Slurm requeues such a job and holds it until someone releases it, which may be never; or it cancels the job. Both end
/// the attempt. A held job is then superseded, and canceled as such.
pub(super) fn reclassified<'a>(
    run: &Run,
    task: &Task<'_>,
    row: &'a QueueRow,
    seen: &Observation<'_>,
) -> Cow<'a, QueueRow> {
    let record = seen.accounting;
    let held = row.state.is_waiting() && is_held_for_it(row, record);
    let given_up = row.state == SlurmState::Cancelled
        && record
            .filter(|record| is_of_this_end(record, row))
            .is_some_and(|record| is_given_up(run, task, record, row.start, seen.markers));
    if held || given_up {
        Cow::Owned(QueueRow { state: SlurmState::LaunchFailed, ..row.clone() })
    } else {
        Cow::Borrowed(row)
    }
}

/// Slurm 22.05 drops the reason within seconds, and then reports the same as for a job that an administrator holds. The
/// run before tells them apart: it was requeued in the second in which it started.
fn is_held_for_it(row: &QueueRow, record: Option<&AccountingRow>) -> bool {
    match row.reason.as_str() {
        "launch failed requeued held" => true,
        "JobHeldAdmin" | "JobHeldUser" => {
            record.and_then(last_run).is_some_and(|run| run.was_requeued && took_no_time(run.start, run.end))
        }
        _ => false,
    }
}

/// The last run of a pending job. Accounting may already have a record of its wait.
fn last_run(record: &AccountingRow) -> Option<PastRun> {
    Some(record.as_past_run()).filter(|run| run.was_requeued).or(record.before)
}

/// Whether Slurm itself canceled a job that had nodes, without a request of its owner. `start` is the queue's start time.
///
/// Accounting names the user of a cancellation. A node that cannot start a job, because it still has a process of the
/// same id, cancels it as root. A job that never had nodes may have been canceled because its dependency failed.
fn is_given_up(
    run: &Run,
    task: &Task<'_>,
    record: &AccountingRow,
    start: Option<i64>,
    markers: Option<&Markers>,
) -> bool {
    // A job without marker files has no entry in the poll's result.
    let none = Markers::default();
    let markers = markers.unwrap_or(&none);
    // For a requeued job accounting may still have the start time before.
    let never_started = || has_never_started(run, task, markers, start.or(record.start), record.end);
    let by_slurm = match record.canceled_by {
        None => true,
        Some(user) => user == ROOT && never_started(),
    };
    let had_nodes = run.started_at.is_some() || start.or(record.start).is_some() || record.before.is_some();
    task.desired == DesiredState::Run && record.state == SlurmState::Cancelled && by_slurm && had_nodes
}

/// The final state of a run that only accounting lists.
pub(super) fn state_of(
    run: &Run,
    task: &Task<'_>,
    record: &AccountingRow,
    markers: Option<&Markers>,
) -> SlurmState {
    if is_given_up(run, task, record, None, markers) {
        SlurmState::LaunchFailed
    } else {
        record.state.clone()
    }
}
