//! A cluster: its configuration and its health. It shows neither a key nor a key's path.

use chrono::{DateTime, Utc};
use domain::{
    Cluster, ClusterName, RpcTokens, Timestamp,
    preflight::{Check, Outcome},
};
use persistence::PollState;
use serde::Serialize;
use serde_json::Value;
use utoipa::ToSchema;

use crate::{
    caches::known_clusters::{KeptFacts, UnusableCluster},
    calls::clusters::settings::ClusterSettings,
    http::extract::etag,
    ports::{HostReport, HostState, LinkReport},
    view::{
        cluster_defaults::ClusterDefaultsView,
        cluster_polls::{ClusterPollView, RpcBudgetView},
        login_host::{BreakerState, LoginHostView, SshUseView, hosts},
        orphan::OrphansView,
    },
};

/// All clusters.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct ClusterList {
    /// The clusters of the configuration file in its order, then those in the database, oldest first. The first one is the
    /// default.
    pub clusters: Vec<ClusterView>,
    /// Clusters in the database with invalid settings. They are not used until they are corrected or deleted.
    pub unusable: Vec<UnusableClusterView>,
}

/// A cluster in the database with invalid settings.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct UnusableClusterView {
    /// The cluster's name.
    pub name: String,
    /// The value for `If-Match` in a change.
    pub etag: String,
    /// What is wrong with the settings.
    pub reason: String,
    /// The stored settings.
    #[schema(value_type = Object)]
    pub settings: Value,
}

impl UnusableClusterView {
    pub(crate) fn new(name: &ClusterName, unusable: &UnusableCluster) -> Self {
        Self {
            name: name.to_string(),
            etag: etag(unusable.revision),
            reason: unusable.reason(),
            settings: unusable.settings.clone(),
        }
    }
}

/// Where a cluster is defined.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum ClusterSource {
    /// In the configuration file or the environment.
    File,
    /// In the database, by `POST /clusters`.
    Api,
}

/// A cluster.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct ClusterView {
    /// The cluster's name, as in `backend_details.cluster_name`.
    pub name: String,
    /// Whether this is the cluster of jobs that name none.
    pub is_default: bool,
    /// Where the cluster is defined. A cluster of the file is changed only there.
    pub source: ClusterSource,
    /// The overall state.
    pub state: ClusterState,
    /// Why the answering process cannot use the cluster, whatever the cluster's own state; null if it can.
    pub unavailable: Option<String>,
    /// The settings as they were sent, to be changed and sent again; null for a cluster of the file.
    #[schema(value_type = Option<ClusterSettings>)]
    pub settings: Option<Value>,
    /// The login name on the cluster.
    pub user: String,
    /// The login hosts as seen by the answering process, the preferred one first.
    pub login_hosts: Vec<LoginHostView>,
    /// `open` while the service pauses connections to every login host after failures; `closed` otherwise.
    pub breaker: BreakerState,
    /// The directory for specifications, scripts, logs and results.
    pub base_results_dir: String,
    /// The default account; null for Slurm's default.
    pub account: Option<String>,
    /// The default partitions; null for Slurm's default.
    pub partition: Option<String>,
    /// The default container mounts.
    pub container_mounts: Vec<String>,
    /// The defaults of jobs.
    pub defaults: ClusterDefaultsView,
    /// The longest allowed time limit, in hours, while the cluster has not reported the limits of its partitions.
    pub max_time_hours: f64,
    /// When the cluster last reported its partitions; null if it never has.
    pub partitions_fetched_on: Option<DateTime<Utc>>,
    /// The polls of the cluster, by any process; null before the first one.
    pub poll: Option<ClusterPollView>,
    /// The requests that the service may make of Slurm, and those that all processes made; null without a limit.
    pub rpc_budget: Option<RpcBudgetView>,
    /// Slurm jobs with this service's job names that belong to no active attempt, from the last poll.
    pub orphans: OrphansView,
    /// The SSH use of the answering process. Other processes count their own.
    pub ssh: SshUseView,
}

/// Whether a cluster is usable.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum ClusterState {
    /// The last reply was valid.
    Ok,
    /// The cluster does not answer, or not correctly.
    Failing,
    /// The cluster accepts none of the service's keys. Its jobs wait until an administrator corrects that.
    AuthRequired,
    /// The cluster was not contacted yet.
    Unknown,
    /// The service cannot use the cluster, see `unavailable`. Its jobs wait.
    Unavailable,
}

/// The facts for a view beside the configuration.
pub(crate) struct ClusterFacts<'a> {
    pub(crate) is_default: bool,
    /// None for a cluster of the configuration file.
    pub(crate) kept: Option<&'a KeptFacts>,
    pub(crate) links: Vec<LinkReport>,
    pub(crate) poll: Option<&'a PollState>,
    pub(crate) partitions_fetched_on: Option<Timestamp>,
    /// What was left of the RPC budget after the last request, and the number of requests.
    pub(crate) rpcs: Option<(RpcTokens, u64)>,
}

impl ClusterView {
    pub(crate) fn new(cluster: &Cluster, facts: ClusterFacts<'_>, now: Timestamp) -> Self {
        let ClusterFacts { is_default, kept, links, poll, partitions_fetched_on, rpcs } = facts;
        let unavailable = kept.and_then(|kept| kept.unavailable.clone());
        let hosts = hosts(&links);
        let is_open = !hosts.is_empty() && hosts.iter().all(|host| host.retry_in.is_some());
        Self {
            name: cluster.name.to_string(),
            is_default,
            source: if kept.is_some() { ClusterSource::Api } else { ClusterSource::File },
            state: match unavailable {
                Some(_) => ClusterState::Unavailable,
                None => state(&hosts, poll, partitions_fetched_on),
            },
            unavailable,
            settings: kept.map(|kept| ClusterSettings::shown(cluster.name.as_str(), &kept.settings)),
            user: cluster.user.to_string(),
            breaker: if is_open { BreakerState::Open } else { BreakerState::Closed },
            login_hosts: hosts.into_iter().map(|host| LoginHostView::new(host, now)).collect(),
            base_results_dir: cluster.base_dir.to_string(),
            account: cluster.account.as_ref().map(ToString::to_string),
            partition: cluster.partitions.as_ref().map(ToString::to_string),
            container_mounts: cluster.mounts.iter().map(ToString::to_string).collect(),
            defaults: ClusterDefaultsView::from(cluster),
            max_time_hours: cluster.max_time_hours,
            partitions_fetched_on,
            poll: poll.map(|poll| ClusterPollView::new(poll, now)),
            rpc_budget: cluster.rpc_budget.map(|budget| RpcBudgetView::new(budget, rpcs, now)),
            orphans: OrphansView::new(poll.map_or(&[], |poll| &poll.orphans)),
            ssh: SshUseView::new(links),
        }
    }
}

fn state(hosts: &[&HostReport], poll: Option<&PollState>, fetched: Option<Timestamp>) -> ClusterState {
    let is_bad = |host: &&&HostReport| !matches!(host.state, HostState::Up | HostState::Untried);
    let all_bad = !hosts.is_empty() && hosts.iter().filter(is_bad).count() == hosts.len();
    let polled = poll.and_then(|poll| poll.polled_at).is_some();
    let refused = all_bad && hosts.iter().all(|host| host.state == HostState::AuthRefused);
    if refused || poll.is_some_and(|poll| poll.auth_required) {
        ClusterState::AuthRequired
    } else if all_bad || poll.is_some_and(|poll| poll.failures > 0) {
        ClusterState::Failing
    } else if polled || fetched.is_some() || hosts.iter().any(|host| host.state == HostState::Up) {
        ClusterState::Ok
    } else {
        ClusterState::Unknown
    }
}

/// The result of a preflight.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct PreflightView {
    /// The cluster's name.
    pub cluster: String,
    /// The worst outcome; skipped checks do not count.
    pub outcome: Outcome,
    /// When the preflight began.
    pub checked_on: DateTime<Utc>,
    /// The checks, in the order in which to fix failures.
    pub checks: Vec<Check>,
}
