//! What this process's own connections to the clusters say about themselves, through a trait, because this crate does
//! not know SSH.

use std::time::Duration;

use domain::ClusterName;
use serde::Serialize;
use utoipa::ToSchema;

/// Tells how the connections fare. Answers from memory.
pub trait ClusterLinks: Send + Sync + 'static {
    /// One report for each use that this process makes of the cluster.
    fn links(&self, cluster: &ClusterName) -> Vec<LinkReport>;
}

/// The connections of one use.
#[derive(Debug, Clone)]
pub struct LinkReport {
    /// What they are for.
    pub used_for: LinkUse,
    /// Every login host, in the configured order.
    pub hosts: Vec<HostReport>,
    /// Connections that are open now.
    pub sessions_open: usize,
    /// Attempts to connect since this process started, whether they worked or not.
    pub connects_total: u64,
    /// Commands that got an answer or an error, since then.
    pub commands_total: u64,
    /// Commands that got an error, since then.
    pub failures_total: u64,
}

/// What connections are for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum LinkUse {
    /// Submitting, polling, cancelling.
    Worker,
    /// Reading logs for callers.
    Logs,
    /// What callers ask of a cluster itself, such as a preflight.
    Operations,
}

/// What is known about one login host.
#[derive(Debug, Clone)]
pub struct HostReport {
    /// `host`, or `host:port` when the port is not 22.
    pub host: String,
    /// What the last attempt to connect showed.
    pub state: HostState,
    /// How long that has been so; none while it works or was never tried.
    pub for_the_last: Option<Duration>,
    /// The last failure, kept after a recovery.
    pub last_error: Option<String>,
    /// How long it is left alone; none when it may be tried at once.
    pub retry_in: Option<Duration>,
}

/// What the last attempt to connect to a login host showed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum HostState {
    /// Not tried by this process.
    Untried,
    /// It worked.
    Up,
    /// It failed for a reason that may pass by itself.
    Down,
    /// The host accepted none of our keys, or there is none.
    AuthRefused,
    /// We refused its host key.
    HostKeyRefused,
}
