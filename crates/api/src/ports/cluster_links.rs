//! The port to this process's SSH connections: this crate does not know SSH.

use std::time::Duration;

use domain::ClusterName;
use serde::Serialize;
use utoipa::ToSchema;

/// Reports the state of the connections, from memory.
pub trait ClusterLinks: Send + Sync + 'static {
    /// One report for each use of the cluster in this process.
    fn links(&self, cluster: &ClusterName) -> Vec<LinkReport>;
}

/// The connections for one purpose.
#[derive(Debug, Clone, Serialize, ToSchema)]
#[schema(as = LinkUseView)]
pub struct LinkReport {
    /// The purpose.
    pub used_for: LinkUse,
    /// Every login host, in the configured order.
    #[serde(skip)]
    pub hosts: Vec<HostReport>,
    /// Open connections.
    pub sessions_open: usize,
    /// Attempts to connect, successful or not.
    pub connects_total: u64,
    /// Completed commands, successful or not.
    pub commands_total: u64,
    /// Failed commands.
    pub failures_total: u64,
}

/// The purpose of connections.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum LinkUse {
    /// Submissions, polls and cancellations.
    Worker,
    /// Reading logs for callers.
    Logs,
    /// Calls that contact the cluster, such as a preflight.
    Operations,
}

/// The state of one login host.
#[derive(Debug, Clone)]
pub struct HostReport {
    /// `host`, or `host:port` when the port is not 22.
    pub host: String,
    /// The result of the last attempt to connect.
    pub state: HostState,
    /// How long the host has been in this state; none while it works or before the first attempt.
    pub for_the_last: Option<Duration>,
    /// The last failure; it stays after a recovery.
    pub last_error: Option<String>,
    /// The time until the next attempt; none if the host may be tried at once.
    pub retry_in: Option<Duration>,
}

/// The result of the last attempt to connect to a login host.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum HostState {
    /// This process has not tried the host.
    Untried,
    /// The attempt succeeded.
    Up,
    /// The attempt failed for a reason that may be temporary.
    Down,
    /// The host accepted none of the service's keys, or there are none.
    AuthRefused,
    /// The service refused the host's key.
    HostKeyRefused,
}
