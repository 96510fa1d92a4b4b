//! Ports: traits that the composition root implements, because this crate knows neither SSH nor the key directory.

use std::{pin::Pin, time::Duration};

use domain::{Cluster, ClusterIdentity, ClusterName, Violation, preflight::Check};
use remote::{InstallCredentials, LogAnswer, LogQuestion, TestOnly, TestOnlyAnswer};
use serde::Serialize;
use serde_json::Value;
use utoipa::ToSchema;

/// Checks settings, and loads the stored clusters.
pub trait ClusterKeeper: Send + Sync + 'static {
    /// The cluster with these settings, by the rules of the configuration file, or all faults.
    fn check(&self, name: &ClusterName, settings: &Value) -> Result<CheckedCluster, Vec<Violation>>;

    /// Loads changes from the database now. Other processes notice them by themselves.
    fn refresh(&self) -> Pin<Box<dyn Future<Output = ()> + Send + '_>>;
}

/// A cluster with valid settings.
#[derive(Debug, Clone)]
pub struct CheckedCluster {
    pub cluster: Cluster,
    pub identity: ClusterIdentity,
}

/// An answer that the cluster may take seconds for.
pub type ClusterAnswer<'a, T> = Pin<Box<dyn Future<Output = Result<T, ClusterUnavailable>> + Send + 'a>>;

/// Contacts a cluster for a waiting caller.
pub trait ClusterOps: Send + Sync + 'static {
    /// Tests everything that jobs need. Failures are in the checks; an error means that no check ran.
    fn preflight<'a>(&'a self, cluster: &'a ClusterName) -> ClusterAnswer<'a, Vec<Check>>;

    /// Adds an entry to the Enroot credentials of the cluster's user.
    fn install_credentials<'a>(
        &'a self,
        cluster: &'a ClusterName,
        command: InstallCredentials,
    ) -> ClusterAnswer<'a, ()>;

    /// Asks Slurm to check a script, and which paths exist.
    fn test_only<'a>(
        &'a self,
        cluster: &'a ClusterName,
        command: TestOnly,
    ) -> ClusterAnswer<'a, TestOnlyAnswer>;
}

/// Why a cluster did not carry out a request.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ClusterUnavailable {
    /// Another caller has sent the same request.
    #[error("the request is already running for another caller")]
    Busy,
    /// The cluster did not answer, or refused the request.
    #[error("{detail}")]
    Unanswered {
        /// The reason, for the caller; it contains no secret.
        detail: String,
    },
}

/// One answer for each question, in the same order.
pub type LogReading = Pin<Box<dyn Future<Output = Result<Vec<LogAnswer>, LogUnavailable>> + Send>>;

/// Reads logs on clusters.
pub trait LogSource: Send + Sync + 'static {
    /// Asks one cluster in one remote command. Dropping the future cancels the question.
    fn ask(&self, cluster: &ClusterName, questions: Vec<LogQuestion>) -> LogReading;
}

/// The cluster did not answer.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{detail}")]
pub struct LogUnavailable {
    /// The reason, for the caller.
    pub detail: String,
}

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
