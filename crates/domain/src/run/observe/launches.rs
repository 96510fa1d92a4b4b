//! The ways in which Slurm says that it could not start a job, of which few say so.

use std::borrow::Cow;

use chrono::TimeDelta;
use remote::Markers;
use slurm::{AccountingRow, PastRun, QueueRow, SlurmState};

use super::{Observation, Records, at, is_waiting};
use crate::{
    clock::Timestamp,
    job::{
        attempt::Attempt,
        stored::{DesiredState, Job},
    },
};

/// The row, with the end of a run whose launch failed as what it is. Slurm puts such a job back into its queue and holds it
/// there until somebody releases it, which may be never; or it gives it up. Both are the end of the attempt: a held job is
/// superseded then, and is canceled as such.
pub(super) fn as_told<'a>(
    job: &Job,
    row: &'a QueueRow,
    record: Option<&AccountingRow>,
    markers: Option<&Markers>,
) -> Cow<'a, QueueRow> {
    let held = is_waiting(&row.state) && is_held_for_it(row, record);
    let given_up = row.state == SlurmState::Cancelled
        && record
            .filter(|record| is_of_this_end(record, row))
            .is_some_and(|record| is_given_up(job, record, row.start, markers));
    if held || given_up {
        Cow::Owned(QueueRow { state: SlurmState::LaunchFailed, ..row.clone() })
    } else {
        Cow::Borrowed(row)
    }
}

/// Slurm 22.05 forgets its reason within seconds and says from then on what it says of a job that an administrator holds. The
/// run before tells the two apart: it was put back in the second in which it began.
fn is_held_for_it(row: &QueueRow, record: Option<&AccountingRow>) -> bool {
    match row.reason.as_str() {
        "launch failed requeued held" => true,
        "JobHeldAdmin" | "JobHeldUser" => record.and_then(run_before).is_some_and(|run| lasted_no_time(&run)),
        _ => false,
    }
}

/// The last run of a job that waits. Its waiting may have a record of its own, or not yet.
fn run_before(record: &AccountingRow) -> Option<PastRun> {
    Some(record.as_past_run()).filter(|run| run.was_requeued).or(record.before)
}

fn lasted_no_time(run: &PastRun) -> bool {
    run.was_requeued && took_no_time(run.start, run.end)
}

/// Both are whole seconds.
fn took_no_time(start: Option<i64>, end: Option<i64>) -> bool {
    start.zip(end).is_some_and(|(start, end)| (0..=1).contains(&(end - start)))
}

const ROOT: u32 = 0;

/// Whether the run from `start` to `end` has not left the mark with which its script begins. One that was left before is of a run
/// that Slurm has forgotten: a controller that was killed starts a job anew under the same count of restarts. Clocks of nodes may
/// differ, so only what took no time is judged by them alone; else an earlier run has to be known, too.
pub(crate) fn has_never_started(
    attempt: &Attempt,
    markers: &Markers,
    start: Option<i64>,
    end: Option<i64>,
) -> bool {
    let Some(mark) = markers.started.as_ref().filter(|mark| attempt.slurm_id == Some(mark.slurm_id)) else {
        return took_no_time(start, end);
    };
    let Some(start) = start else { return false };
    let began_before = attempt.started_at.is_some_and(|known| known.timestamp() + 1 < start);
    let ran_before = began_before || attempt.requeues > mark.restart;
    mark.at + 2 < start && (ran_before || took_no_time(Some(start), end))
}

/// Whether Slurm itself has canceled what it had given nodes to, at `start` as the queue knows it, and nobody wanted it to end.
/// Of whoever asks for an end, accounting says who it was; what never had a node may have waited for what will never come. A node
/// that cannot start a job, since it still has a run of it, or of another by this id, asks for its end as root.
fn is_given_up(job: &Job, record: &AccountingRow, start: Option<i64>, markers: Option<&Markers>) -> bool {
    // A job that has left no mark has no entry among them.
    let (none, attempt) = (Markers::default(), job.attempt.as_ref());
    let markers = markers.unwrap_or(&none);
    // Of a job that was started again accounting may still have the start before.
    let unborn = || {
        attempt.is_some_and(|attempt| has_never_started(attempt, markers, start.or(record.start), record.end))
    };
    let by_slurm = match record.canceled_by {
        None => true,
        Some(user) => user == ROOT && unborn(),
    };
    let by_nobody = record.state == SlurmState::Cancelled && by_slurm;
    let began = job.attempt.as_ref().is_some_and(|attempt| attempt.started_at.is_some());
    let had_nodes = began || start.or(record.start).is_some() || record.before.is_some();
    job.desired == DesiredState::Run && by_nobody && had_nodes
}

/// How a job ended that only accounting knows.
pub(super) fn state_of(job: &Job, record: &AccountingRow, markers: Option<&Markers>) -> SlurmState {
    if is_given_up(job, record, None, markers) { SlurmState::LaunchFailed } else { record.state.clone() }
}

/// Whether a record is of the end that the queue shows: accounting that lags behind still has an earlier run's. The queue may
/// show it as what it was taken for.
pub(crate) fn is_of_this_end(record: &AccountingRow, row: &QueueRow) -> bool {
    let given_up = row.state == SlurmState::LaunchFailed && record.state == SlurmState::Cancelled;
    (record.state == row.state || given_up) && record.end == row.end
}

/// Whether accounting will say soon what the queue does not: by which signal the job ended (22.05), with which code if it has
/// left no mark that says so, or who canceled it.
pub(super) fn is_to_be_told(job: &Job, row: &QueueRow, seen: &Observation<'_>, now: Timestamp) -> bool {
    let how = row.state == SlurmState::Failed && (row.reason == "JobLaunchFailure" || !is_marked(row, seen));
    let by_whom = row.state == SlurmState::Cancelled && job.desired == DesiredState::Run;
    (how || by_whom) && is_awaited(row, seen, now)
}

/// Whether what ended has left the mark of its end.
pub(crate) fn is_marked(row: &QueueRow, seen: &Observation<'_>) -> bool {
    seen.markers.and_then(|markers| markers.exit).is_some_and(|exit| exit.slurm_id == row.id)
}

/// Whether it is so short a time since the end that the queue shows that accounting, which has another name's record left out,
/// may yet tell of it.
pub(crate) fn is_awaited(row: &QueueRow, seen: &Observation<'_>, now: Timestamp) -> bool {
    // Accounting lags by seconds. A cluster whose clock is further off than this is not waited for.
    const LAG: TimeDelta = TimeDelta::seconds(30);
    // One that has not heard of the job, or still has it run, will know its end when it has caught up. The queue keeps what has
    // ended for five minutes (MinJobAge of slurm.conf(5)), and is worth more than its absence.
    const AWAY: TimeDelta = TimeDelta::minutes(3);
    let knows = seen.accounting.is_some_and(|record| record.state.is_final());
    let patience = match seen.records {
        // As when the queue has forgotten it: what accounting says when it is back decides.
        Records::Unknown if !knows => TimeDelta::MAX,
        Records::Answered if !knows => AWAY,
        Records::Unknown | Records::Answered | Records::Off => LAG,
    };
    at(row.end).is_some_and(|end| (now - end).abs() < patience)
}
