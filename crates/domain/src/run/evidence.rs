//! The evidence about a job in Slurm: what one poll observed, and what single pieces of it prove.

use chrono::TimeDelta;
use remote::{ExitRecord, Markers, Reports, SignsOfLife, StartedMarker, StatusChunk};
use slurm::{AccountingRow, QueueRow, SlurmJobId, SlurmState, timestamp};

use crate::{clock::Timestamp, job::run::Run, run::task::Task};

/// The user as whom Slurm itself cancels jobs.
pub(crate) const ROOT: u32 = 0;
pub(crate) const SIGTERM: u8 = 15;
/// The exit code of our batch script when SIGTERM ends it.
pub(crate) const ENDED_BY_TERM: u8 = 128 + SIGTERM;

/// What one poll observed of one job.
#[derive(Debug, Clone, Copy, Default)]
pub struct Observation<'a> {
    pub queue: Option<&'a QueueRow>,
    /// Whether squeue answered, so that a missing row means that the job is not in the queue.
    pub queue_answered: bool,
    pub accounting: Option<&'a AccountingRow>,
    /// Whether accounting answered, so that a missing record means something.
    pub records: Records,
    pub markers: Option<&'a Markers>,
    pub status: &'a [StatusChunk],
    /// How much the job has written, if the poll checked that.
    pub signs_of_life: Option<&'a SignsOfLife>,
    /// What it reports of itself, if the poll asked for that.
    pub reports: Option<&'a Reports>,
    /// How long the cluster has been unreachable so far, in total.
    pub unreachable_for: TimeDelta,
}

/// The availability of accounting.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Records {
    /// It was not queried, or did not answer.
    #[default]
    Unknown,
    Answered,
    /// The cluster has no accounting.
    Off,
}

impl<'a> Observation<'a> {
    /// The same without rows of another name: Slurm reuses ids after a controller's reset.
    pub(crate) fn named(&self, name: &str) -> Self {
        Self {
            queue: self.queue.filter(|row| row.name == name),
            accounting: self.accounting.filter(|record| record.name == name),
            ..*self
        }
    }

    /// The queue's row, if nothing else was observed of the job.
    pub fn queue_alone(&self) -> Option<&'a QueueRow> {
        let has_more = self.accounting.is_some()
            || self.markers.is_some()
            || !self.status.is_empty()
            || self.signs_of_life.is_some()
            || self.reports.is_some();
        self.queue.filter(|_| !has_more)
    }

    /// Whether the run that ended has left its exit record.
    pub(crate) fn has_exit_record(&self, row: &QueueRow) -> bool {
        self.markers.is_some_and(|markers| exit_record(markers, Some(row.id)).is_some())
    }

    /// Whether accounting may still report the end that the queue shows, because it was so short a time ago.
    pub(crate) fn awaits_accounting(&self, row: &QueueRow, now: Timestamp) -> bool {
        // Accounting lags by seconds. A cluster whose clock differs by more than this is not waited for.
        const LAG: TimeDelta = TimeDelta::seconds(30);
        // An accounting that does not have the job, or lists it as running, reports its end when it has caught up. The
        // queue keeps a finished job for five minutes (MinJobAge in slurm.conf(5)).
        const CATCH_UP: TimeDelta = TimeDelta::minutes(3);
        let has_final_record = self.accounting.is_some_and(|record| record.state.is_final());
        let patience = match self.records {
            // Once the queue has dropped the job, its record decides as soon as accounting is back.
            Records::Unknown if !has_final_record => TimeDelta::MAX,
            Records::Answered if !has_final_record => CATCH_UP,
            Records::Unknown | Records::Answered | Records::Off => LAG,
        };
        timestamp(row.end).is_some_and(|end| (now - end).abs() < patience)
    }
}

/// The exit record of this Slurm job.
pub(crate) fn exit_record(markers: &Markers, id: Option<SlurmJobId>) -> Option<ExitRecord> {
    markers.exit.filter(|exit| Some(exit.slurm_id) == id)
}

/// The start marker of this Slurm job.
pub(crate) fn start_marker(markers: &Markers, id: Option<SlurmJobId>) -> Option<&StartedMarker> {
    markers.started.as_ref().filter(|started| Some(started.slurm_id) == id)
}

/// The Slurm job that holds the attempt, if that is not this one.
pub(crate) fn other_claim(markers: &Markers, id: Option<SlurmJobId>) -> Option<SlurmJobId> {
    markers.run_claim.filter(|claim| Some(*claim) != id)
}

/// Whether a record describes the end that the queue shows. An accounting that lags behind still has the end of an
/// earlier run. The queue's row may already be reclassified as a failed launch.
pub(crate) fn is_of_this_end(record: &AccountingRow, row: &QueueRow) -> bool {
    let given_up = row.state == SlurmState::LaunchFailed && record.state == SlurmState::Cancelled;
    (record.state == row.state || given_up) && record.end == row.end
}

/// Whether a run started and ended within a second. Both times are whole seconds.
pub(crate) fn took_no_time(start: Option<i64>, end: Option<i64>) -> bool {
    start.zip(end).is_some_and(|(start, end)| (0..=1).contains(&(end - start)))
}

/// Whether the run from `start` to `end` never started: its script has not left the start marker.
///
/// An older marker is of a run that Slurm has forgotten: a killed controller starts a job again with the same restart
/// count. The clocks of nodes may differ, so the times alone decide only for a run that took no time. Otherwise an
/// earlier run has to be known.
pub(crate) fn has_never_started(
    run: &Run,
    task: &Task<'_>,
    markers: &Markers,
    start: Option<i64>,
    end: Option<i64>,
) -> bool {
    let Some(marker) = start_marker(markers, task.attempt.slurm_id) else { return took_no_time(start, end) };
    let Some(start) = start else { return false };
    let began_before = run.started_at.is_some_and(|known| known.timestamp() + 1 < start);
    let ran_before = began_before || run.requeues > marker.restart;
    marker.at + 2 < start && (ran_before || took_no_time(Some(start), end))
}
