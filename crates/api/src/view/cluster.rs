//! A cluster: its configuration and its health. It shows neither a key nor a key's path.

use chrono::{DateTime, TimeDelta, Utc};
use domain::{
    Cluster, ClusterName, JobId, Orphan, OrphanKind, RpcBudget, RpcTokens, Timestamp,
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
    view::cluster_defaults::ClusterDefaultsView,
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
    fn new(budget: RpcBudget, spent: Option<(RpcTokens, u64)>, now: Timestamp) -> Self {
        Self {
            burst: budget.burst,
            per_minute: budget.per_minute,
            left: budget.at(spent.map(|(tokens, _)| tokens), now).left,
            spent_total: spent.map_or(0, |(_, total)| total),
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

/// The login hosts as seen by the first use that has tried any; the worker is the first use.
fn hosts(links: &[LinkReport]) -> Vec<&HostReport> {
    let has_tried = |link: &&LinkReport| link.hosts.iter().any(|host| host.state != HostState::Untried);
    let source = links.iter().find(has_tried).or_else(|| links.first());
    source.into_iter().flat_map(|link| &link.hosts).collect()
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

impl LoginHostView {
    fn new(host: &HostReport, now: Timestamp) -> Self {
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

impl ClusterPollView {
    fn new(poll: &PollState, now: Timestamp) -> Self {
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

impl SshUseView {
    fn new(links: Vec<LinkReport>) -> Self {
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

/// The most orphans in a view.
const SHOWN: usize = 50;

/// The orphans that the last poll found.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct OrphansView {
    /// The number of orphans, at most 1000.
    pub count: usize,
    /// The oldest orphans, at most 50.
    pub jobs: Vec<OrphanView>,
}

/// A Slurm job with a name of this service that belongs to no active attempt.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct OrphanView {
    /// Its Slurm id.
    #[schema(example = "4711")]
    pub slurm_job_id: String,
    /// Its job name in Slurm.
    pub slurm_job_name: String,
    /// The job in its name; null for an image conversion.
    pub job_id: Option<JobId>,
    /// Why it is an orphan.
    pub kind: OrphanKind,
    /// Its state as Slurm reports it.
    #[schema(example = "RUNNING")]
    pub slurm_state: String,
    /// When it was first seen.
    pub first_seen_on: DateTime<Utc>,
    /// When its cancellation was last requested; null if it was not.
    pub cancel_sent_on: Option<DateTime<Utc>>,
    /// The explanation as a sentence.
    pub message: String,
}

impl OrphansView {
    pub(crate) fn new(orphans: &[Orphan]) -> Self {
        Self { count: orphans.len(), jobs: orphans.iter().take(SHOWN).map(OrphanView::new).collect() }
    }
}

impl OrphanView {
    fn new(orphan: &Orphan) -> Self {
        Self {
            slurm_job_id: orphan.slurm_id.to_string(),
            slurm_job_name: orphan.name.to_string(),
            job_id: orphan.job(),
            kind: orphan.kind,
            slurm_state: orphan.state.clone(),
            first_seen_on: orphan.first_seen_at,
            cancel_sent_on: orphan.cancel_sent_at,
            message: orphan.sentence(),
        }
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
