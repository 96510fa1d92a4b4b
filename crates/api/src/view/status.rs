//! The small status document that dashboards poll.

// `ToSchema` recognizes this type by its name only.
use chrono::{DateTime, TimeDelta, Utc};
use domain::{Job, JobId, Phase, Progress, Source, Status, TaskCounts, Timestamp, queue_wait};
use persistence::Pulse;
use serde::Serialize;
use serde_json::{Map, Value};
use utoipa::ToSchema;

use super::{FailureView, PendingView};
use crate::state::Pulses;

/// A job's status.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub(crate) struct StatusView {
    /// The job's id, the same across all attempts.
    pub id: JobId,
    /// The name from the request.
    pub name: Option<String>,
    /// TAO's status.
    pub status: Status,
    /// The job's phase, finer than `status`.
    pub phase: Phase,
    /// What happens now and, if the job waits, why.
    pub message: String,
    /// Slurm's reason why the job waits.
    pub pending_reason: Option<String>,
    /// The meaning of the reason, what blocks the job, and when Slurm expects to start it; null if the job waits neither in Slurm's
    /// queue nor for other jobs.
    pub pending: Option<PendingView>,
    /// How long the newest attempt has waited in Slurm's queue, in seconds: until the last poll, or until it last started. Null before
    /// it entered the queue.
    #[schema(minimum = 0)]
    pub queue_wait_seconds: Option<i64>,
    /// The newest attempt's Slurm id.
    #[schema(example = "4711")]
    pub slurm_job_id: Option<String>,
    /// The newest attempt's state as Slurm reports it.
    #[schema(example = "RUNNING")]
    pub slurm_state: Option<String>,
    /// The cluster's name in the service's configuration.
    pub cluster: String,
    /// The partition that the job runs in; before it runs, the partitions that it may run in.
    pub partition: Option<String>,
    /// The nodes of the newest attempt, one by one.
    pub nodes: Vec<String>,
    /// The number of the newest attempt; 0 before the first.
    pub attempt: u32,
    /// How often the job went on in another attempt, after a failure of the infrastructure or by its restart policy.
    pub retry_count: u32,
    /// Why the job failed; null unless its status is `Error` and its program has run. Of an array, why the first of its tasks
    /// failed that did; `GET /jobs/{id}/diagnosis` tells the others.
    pub failure: Option<FailureView>,
    /// The progress, as the job reports it.
    pub progress: ProgressView,
    /// How many tasks are in which state; null for a job without an array.
    pub tasks: Option<TaskCounts>,
    /// When the service accepted the job.
    pub created_on: DateTime<Utc>,
    /// When Slurm first accepted the job.
    pub submitted_on: Option<DateTime<Utc>>,
    /// When the job first started to run.
    pub started_on: Option<DateTime<Utc>>,
    /// When the job reached its final status.
    pub finished_on: Option<DateTime<Utc>>,
    /// When any of these fields last changed.
    pub last_modified: DateTime<Utc>,
    /// When the cluster last confirmed the status.
    pub observed_at: Option<DateTime<Utc>>,
    /// The source of the newest observation.
    pub source: Source,
    /// Whether the cluster has not answered for longer than three polls, so that the status may be out of date.
    pub stale: bool,
    /// Increases with every change of the job.
    pub version: i64,
    #[serde(skip)]
    mark: u8,
}

/// The progress of a job.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub(crate) struct ProgressView {
    /// The last finished epoch.
    pub epoch: Option<u64>,
    /// The total number of epochs.
    pub max_epoch: Option<u64>,
    /// The progress in percent: of the job's progress file, otherwise from the iterations if their number is known, otherwise from the
    /// epochs.
    #[schema(maximum = 100)]
    pub percent: Option<u8>,
    /// How much is done, as the job's progress file says.
    pub done: Option<f64>,
    /// The number that `done` reaches.
    pub total: Option<f64>,
    /// The remaining time: the job's own estimate as it wrote it, otherwise `D days, H:MM:SS` from the pace of its epochs.
    pub eta: Option<String>,
    /// The same in seconds, if it is known.
    pub eta_seconds: Option<u64>,
    /// The time per epoch, as the job reports it.
    pub time_per_epoch: Option<String>,
    /// The time per iteration, as the job reports it.
    pub time_per_iter: Option<String>,
    /// The current iteration.
    pub cur_iter: Option<u64>,
    /// The newest value of the metric that the job is judged by; null if it is NaN or infinite.
    pub key_metric: Option<f64>,
    /// The job's newest message.
    pub message: Option<String>,
    /// The newest value of each metric; null if it is NaN or infinite.
    #[schema(value_type = Object)]
    pub metrics: Map<String, Value>,
}

impl ProgressView {
    /// The progress of an array is the share of its tasks that have ended.
    fn of(job: &Job) -> Self {
        let mut view = Self::from(job.progress());
        if let Some(array) = &job.array {
            let percent = u64::from(array.counts.ended()) * 100 / u64::from(array.counts.total.max(1));
            view.percent = u8::try_from(percent).ok();
        }
        view
    }
}

impl From<&Progress> for ProgressView {
    fn from(progress: &Progress) -> Self {
        Self {
            epoch: progress.epoch,
            max_epoch: progress.max_epoch,
            percent: progress.percent,
            done: progress.done,
            total: progress.total,
            eta: progress.eta_text(),
            eta_seconds: progress.eta_seconds(),
            time_per_epoch: progress.time_per_epoch.clone(),
            time_per_iter: progress.time_per_iter.clone(),
            cur_iter: progress.cur_iter,
            key_metric: progress.key_metric,
            message: progress.message.clone(),
            metrics: progress.metrics.clone(),
        }
    }
}

/// The age of the information about a job, and what the cluster has reported of its nodes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Freshness {
    observed_at: Option<Timestamp>,
    stale: bool,
    /// Slurm's reason blames nodes, but enough of them work.
    pub(crate) has_nodes: bool,
}

/// The assumed poll interval of a cluster that was never polled.
const FIRST_INTERVAL: TimeDelta = TimeDelta::seconds(10);

/// Whether the job is in Slurm, so that polls of its cluster update it.
pub(crate) fn is_watched(phase: Phase) -> bool {
    matches!(phase, Phase::InQueue | Phase::Running | Phase::Suspended | Phase::Finishing)
}

impl Freshness {
    /// Changes a status without changing the job's version.
    pub(crate) fn mark(self) -> u8 {
        u8::from(self.stale) | u8::from(self.has_nodes) << 1
    }

    pub(crate) fn with_nodes(self, has_nodes: bool) -> Self {
        Self { has_nodes, ..self }
    }

    /// A poll without changes still confirms a job, so the cluster's last poll counts as well as the job's own last
    /// observation.
    pub(crate) fn of(job: &Job, pulses: &Pulses, now: Timestamp) -> Self {
        if !is_watched(job.phase) {
            return Self { observed_at: job.observed_at, ..Self::default() };
        }
        Self::watched(job.observed_at, pulses.get(&job.cluster), now)
    }

    fn watched(seen: Option<Timestamp>, pulse: Option<&Pulse>, now: Timestamp) -> Self {
        let observed_at = seen.max(pulse.and_then(|pulse| pulse.polled_at));
        let interval =
            pulse.and_then(|pulse| TimeDelta::from_std(pulse.interval).ok()).unwrap_or(FIRST_INTERVAL);
        let allowed = interval.checked_mul(3).unwrap_or(TimeDelta::MAX);
        let stale = observed_at.is_none_or(|at| now - at > allowed);
        Self { observed_at, stale, has_nodes: false }
    }
}

impl StatusView {
    pub(crate) fn new(job: &Job, freshness: Freshness) -> Self {
        let attempt = job.attempt.as_ref();
        let requested = job.spec.partitions.as_ref().map(ToString::to_string);
        Self {
            id: job.id,
            name: job.spec.name.as_ref().map(ToString::to_string),
            status: job.status,
            phase: job.phase,
            message: job.explained_message(freshness.has_nodes),
            pending_reason: job.pending_reason.clone(),
            pending: PendingView::of(job, freshness.has_nodes),
            queue_wait_seconds: queue_wait(job, freshness.observed_at).map(|wait| wait.num_seconds()),
            slurm_job_id: attempt.and_then(|a| a.slurm_id).map(|id| id.to_string()),
            slurm_state: job.run.state.as_ref().map(ToString::to_string),
            cluster: job.cluster.to_string(),
            partition: job.run.partition.clone().or(requested),
            nodes: job.run.nodes.as_deref().map(slurm::node_list::expand).unwrap_or_default(),
            attempt: attempt.map_or(0, |a| a.no.get()),
            retry_count: job.retry_count,
            failure: FailureView::of(job),
            progress: ProgressView::of(job),
            tasks: job.array.as_ref().map(|array| array.counts),
            created_on: job.created_at,
            submitted_on: job.submitted_at,
            started_on: job.started_at,
            finished_on: job.finished_at,
            last_modified: job.last_modified,
            observed_at: freshness.observed_at,
            source: job.source,
            stale: freshness.stale,
            version: job.version,
            mark: freshness.mark(),
        }
    }

    /// A strong validator (RFC 9110 §8.8): these three values determine the document.
    pub(crate) fn etag(&self) -> String {
        let seen = self.observed_at.map_or(0, |at| at.timestamp_micros());
        format!("\"{}-{seen:x}-{}\"", self.version, self.mark)
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn at(seconds: i64) -> Timestamp {
        DateTime::UNIX_EPOCH + TimeDelta::seconds(seconds)
    }

    #[test]
    fn a_job_is_stale_when_its_cluster_has_not_answered_for_three_polls() {
        let pulse = Pulse { polled_at: Some(at(100)), interval: Duration::from_secs(10) };
        let seen = |now| Freshness::watched(Some(at(50)), Some(&pulse), at(now));
        let fresh = Freshness { observed_at: Some(at(100)), ..Freshness::default() };
        assert_eq!(seen(130), fresh);
        assert_eq!(seen(131), Freshness { stale: true, ..fresh });
    }

    #[test]
    fn a_job_submitted_after_a_quiet_time_is_not_stale_before_its_first_poll() {
        let pulse = Pulse { polled_at: Some(at(100)), interval: Duration::from_mins(1) };
        let seen = Freshness::watched(Some(at(5000)), Some(&pulse), at(5100));
        assert_eq!(seen, Freshness { observed_at: Some(at(5000)), ..Freshness::default() });
    }

    #[test]
    fn a_cluster_that_was_never_polled_is_stale_after_half_a_minute() {
        assert!(!Freshness::watched(Some(at(0)), None, at(30)).stale);
        assert!(Freshness::watched(Some(at(0)), None, at(31)).stale);
        assert!(Freshness::watched(None, None, at(0)).stale);
    }
}
