//! Figures about jobs.

use chrono::{DateTime, Utc};
use domain::{Status, Timestamp};
use persistence::{JobFigures, JobStats};
use serde::Serialize;
use utoipa::ToSchema;

/// Figures about jobs in a window of time.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct StatsView {
    /// The window begins here.
    pub since: DateTime<Utc>,
    /// The window ends before this time.
    pub until: DateTime<Utc>,
    /// Of all jobs that the filters select.
    pub totals: FiguresView,
    /// The jobs that have not ended now, whatever the window, by status; the most frequent one first. Of a status without jobs there is no entry.
    pub now: Vec<StatusCountView>,
    /// Of the jobs of each value of `group_by`, those with the most jobs first; null without `group_by`.
    pub groups: Option<Vec<GroupView>>,
    /// Whether there are more than these 100 groups.
    pub groups_truncated: bool,
    /// Of each part of the window, in order, those without jobs as well; null without `bucket`.
    pub buckets: Option<Vec<BucketView>>,
}

/// The figures of some jobs.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct FiguresView {
    /// The jobs that were accepted in the window.
    #[schema(example = 120)]
    pub submitted: u64,
    /// The jobs that ended in the window. A job that was retried counts when it ends again.
    pub ended: EndedView,
    /// The part of `done` in `done` and `error`; null without any of these.
    #[schema(minimum = 0, maximum = 1, example = 0.94)]
    pub success_rate: Option<f64>,
    /// How long runs waited in Slurm's queue.
    pub queue_wait_seconds: QueueWaitView,
    /// The hours of the window in which Slurm jobs held GPUs, times their GPUs, as Slurm's accounting tells them: of attempts that have
    /// ended, with requeues and retries, also of jobs that were deleted since. A minute after an attempt they are usually known.
    #[schema(minimum = 0, example = 96.5)]
    pub gpu_hours: f64,
}

/// How jobs ended.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct EndedView {
    /// In `Done`.
    #[schema(example = 94)]
    pub done: u64,
    /// In `Error`.
    #[schema(example = 6)]
    pub error: u64,
    /// In `Canceled`.
    #[schema(example = 3)]
    pub canceled: u64,
}

/// How long the runs that started in the window had waited in Slurm's queue. Each attempt of a job is a run, and of an array each task
/// of an attempt. The time is from `submitted_on`, or from Slurm's last requeue of the run, to `started_on`.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct QueueWaitView {
    /// The number of these runs.
    #[schema(example = 130)]
    pub runs: u64,
    /// The median, in seconds; null without a run.
    #[schema(minimum = 0, example = 42.0)]
    pub p50: Option<f64>,
    /// Nine of ten waited at most so long, in seconds; null without a run.
    #[schema(minimum = 0, example = 900.5)]
    pub p90: Option<f64>,
}

/// How many jobs have a status.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct StatusCountView {
    /// The status.
    pub status: Status,
    /// How many jobs have it.
    pub jobs: u64,
}

/// The figures of the jobs with one value.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct GroupView {
    /// The value; null for jobs without one. A job that may run in several partitions counts for each until it runs.
    #[schema(example = "vision")]
    pub value: Option<String>,
    /// Its figures.
    #[serde(flatten)]
    pub figures: FiguresView,
}

/// The figures of a part of the window.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct BucketView {
    /// When the part begins.
    pub start: DateTime<Utc>,
    /// Its figures.
    #[serde(flatten)]
    pub figures: FiguresView,
}

impl From<JobFigures> for FiguresView {
    fn from(figures: JobFigures) -> Self {
        let JobFigures { submitted, done, error, canceled, starts, wait_p50, wait_p90, gpu_seconds } =
            figures;
        Self {
            submitted,
            ended: EndedView { done, error, canceled },
            success_rate: rate(done, error),
            queue_wait_seconds: QueueWaitView {
                runs: starts,
                p50: wait_p50.map(to_millis),
                p90: wait_p90.map(to_millis),
            },
            gpu_hours: hours(gpu_seconds),
        }
    }
}

/// Percentiles are interpolated, and would end in the errors of binary fractions.
fn to_millis(seconds: f64) -> f64 {
    (seconds * 1000.0).round() / 1000.0
}

#[expect(clippy::cast_precision_loss, reason = "seconds are far below 2^53")]
fn hours(seconds: u64) -> f64 {
    seconds as f64 / 3600.0
}

#[expect(clippy::cast_precision_loss, reason = "counts of jobs are far below 2^53")]
fn rate(done: u64, error: u64) -> Option<f64> {
    let judged = done.saturating_add(error);
    (judged > 0).then(|| done as f64 / judged as f64)
}

impl StatsView {
    /// `beginnings`: when the buckets begin; empty if none were asked for.
    pub(crate) fn new(
        (since, until): (Timestamp, Timestamp),
        is_grouped: bool,
        beginnings: &[Timestamp],
        stats: JobStats,
    ) -> Self {
        let group = |(value, figures): (_, JobFigures)| GroupView { value, figures: figures.into() };
        let bucket = |(number, start): (u32, &Timestamp)| BucketView {
            start: *start,
            figures: stats.buckets.get(&number).copied().unwrap_or_default().into(),
        };
        let unfinished = |(status, jobs)| StatusCountView { status, jobs };
        Self {
            since,
            until,
            totals: stats.totals.into(),
            now: stats.unfinished.into_iter().map(unfinished).collect(),
            groups: is_grouped.then(|| stats.groups.into_iter().map(group).collect()),
            groups_truncated: stats.has_more_groups,
            buckets: (!beginnings.is_empty()).then(|| (0..).zip(beginnings).map(bucket).collect()),
        }
    }
}
