//! The login hosts of a cluster, and the use of SSH.

use chrono::{DateTime, TimeDelta, Utc};
use domain::Timestamp;
use serde::Serialize;
use utoipa::ToSchema;

use crate::ports::{HostReport, HostState, LinkReport};

/// Whether the service connects to the cluster.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum BreakerState {
    /// It does.
    Closed,
    /// Not before the earliest `next_attempt_on`.
    Open,
}

/// A login host.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct LoginHostView {
    /// `host`, or `host:port` when the port is not 22.
    pub host: String,
    /// The result of the last attempt to connect.
    pub state: HostState,
    /// The beginning of that state; null while the host works or before the first attempt.
    pub since: Option<DateTime<Utc>>,
    /// The last failure; it stays after a recovery.
    pub last_error: Option<String>,
    /// The next attempt to connect; null if the host may be tried at once.
    pub next_attempt_on: Option<DateTime<Utc>>,
}

/// The login hosts as seen by the first use that has tried any; the worker is the first use.
pub(super) fn hosts(links: &[LinkReport]) -> Vec<&HostReport> {
    let has_tried = |link: &&LinkReport| link.hosts.iter().any(|host| host.state != HostState::Untried);
    let source = links.iter().find(has_tried).or_else(|| links.first());
    source.into_iter().flat_map(|link| &link.hosts).collect()
}

impl LoginHostView {
    pub(super) fn new(host: &HostReport, now: Timestamp) -> Self {
        let delta = |duration| TimeDelta::from_std(duration).unwrap_or_default();
        Self {
            host: host.host.clone(),
            state: host.state,
            since: host.for_the_last.map(|duration| now - delta(duration)),
            last_error: host.last_error.clone(),
            next_attempt_on: host.retry_in.map(|duration| now + delta(duration)),
        }
    }
}

/// SSH use since the process started.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct SshUseView {
    /// Always `this_process`.
    pub scope: SshUseScope,
    /// Open connections.
    pub sessions_open: usize,
    /// Attempts to connect, successful or not.
    pub connects_total: u64,
    /// Completed commands, successful or not.
    pub commands_total: u64,
    /// Failed commands.
    pub failures_total: u64,
    /// The same for each purpose. Without `worker`, another process polls the cluster.
    pub by_use: Vec<LinkReport>,
}

/// Which connections are counted.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum SshUseScope {
    /// The connections of the process that answers.
    ThisProcess,
}

impl SshUseView {
    pub(super) fn new(links: Vec<LinkReport>) -> Self {
        let total = |number: fn(&LinkReport) -> u64| links.iter().map(number).sum();
        Self {
            scope: SshUseScope::ThisProcess,
            sessions_open: links.iter().map(|link| link.sessions_open).sum(),
            connects_total: total(|link| link.connects_total),
            commands_total: total(|link| link.commands_total),
            failures_total: total(|link| link.failures_total),
            by_use: links,
        }
    }
}
