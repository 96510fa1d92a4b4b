//! What the polls of a cluster have found, and the requests that the service may make of Slurm.

use chrono::{DateTime, TimeDelta, Utc};
use domain::{RpcBudget, RpcTokens, Timestamp};
use persistence::PollState;
use serde::Serialize;
use utoipa::ToSchema;

/// The polls of a cluster.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct ClusterPollView {
    /// The last successful poll; null if there was none.
    pub polled_on: Option<DateTime<Utc>>,
    /// The age of the last successful poll, in seconds. It grows while the cluster has no active jobs, because it is not polled then.
    pub age_seconds: Option<f64>,
    /// The interval between polls, in seconds.
    pub interval_seconds: f64,
    /// The number of failed polls since.
    pub failures: u32,
    /// Why the last poll failed; null if it succeeded.
    pub error: Option<String>,
    /// Jobs that the polls ask about.
    pub active_jobs: u64,
    /// Active jobs that neither squeue nor sacct knows now. After a grace period each of them ends with `Error`.
    pub missing_jobs: u64,
    /// Whether there are active jobs and the last successful poll is older than three intervals.
    pub stale: bool,
}

impl ClusterPollView {
    pub(super) fn new(poll: &PollState, now: Timestamp) -> Self {
        let age = poll.polled_at.map(|at| (now - at).max(TimeDelta::zero()));
        let allowed = TimeDelta::from_std(poll.interval.saturating_mul(3)).unwrap_or(TimeDelta::MAX);
        Self {
            polled_on: poll.polled_at,
            age_seconds: age.map(|age| TimeDelta::milliseconds(age.num_milliseconds()).as_seconds_f64()),
            interval_seconds: poll.interval.as_secs_f64(),
            failures: poll.failures,
            error: poll.error.clone(),
            active_jobs: poll.active_jobs,
            missing_jobs: poll.missing_jobs,
            stale: poll.active_jobs > 0 && age.is_none_or(|age| age > allowed),
        }
    }
}

/// The RPC budget of a cluster.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct RpcBudgetView {
    /// The most requests at once.
    pub burst: u32,
    /// The requests per minute after that.
    pub per_minute: u32,
    /// The requests that may be made now. Submissions leave some for polls and cancellations. Negative after more requests than were left.
    pub left: i64,
    /// All requests so far.
    pub spent_total: u64,
}

impl RpcBudgetView {
    pub(super) fn new(budget: RpcBudget, spent: Option<(RpcTokens, u64)>, now: Timestamp) -> Self {
        Self {
            burst: budget.burst,
            per_minute: budget.per_minute,
            left: budget.at(spent.map(|(tokens, _)| tokens), now).left,
            spent_total: spent.map_or(0, |(_, total)| total),
        }
    }
}
