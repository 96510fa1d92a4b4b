//! A cluster as callers see it: what it is configured to be, and how it fares. No key, no path of a key.

use chrono::{DateTime, TimeDelta, Utc};
use domain::{Cluster, ClusterName, Timestamp};
use persistence::PollState;
use serde::Serialize;
use serde_json::Value;
use utoipa::ToSchema;

use crate::{
    caches::known_clusters::{KeptFacts, UnusableCluster},
    calls::clusters::settings::ClusterSettings,
    http::extract::etag,
    ports::cluster_links::{HostReport, HostState, LinkReport, LinkUse},
    view::OrphansView,
};

/// The configured clusters.
#[derive(Debug, Serialize, ToSchema)]
pub struct ClusterList {
    /// Those of the configuration file in its order, then those that are kept in the database, the oldest first. The first is
    /// the default.
    pub clusters: Vec<ClusterView>,
    /// Those in the database whose settings are no good: nobody works with them until they are mended or deleted.
    pub unusable: Vec<UnusableClusterView>,
}

/// A cluster in the database that nobody can work with.
#[derive(Debug, Serialize, ToSchema)]
pub struct UnusableClusterView {
    /// Its name.
    pub name: String,
    /// What `If-Match` needs for a change of it.
    pub etag: String,
    /// What is wrong with it.
    pub reason: String,
    /// Its settings as they are stored.
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

/// Where a cluster is written down.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum ClusterSource {
    /// In the configuration file, or in the environment.
    File,
    /// In the database, by `POST /clusters`.
    Api,
}

/// One cluster.
#[derive(Debug, Serialize, ToSchema)]
pub struct ClusterView {
    /// Its name, as `backend_details.cluster_name` gives it.
    pub name: String,
    /// Whether jobs that name no cluster go here.
    pub is_default: bool,
    /// Where it is written down. What is in the file is changed only there.
    pub source: ClusterSource,
    /// What the rest of this document comes to.
    pub state: ClusterState,
    /// Why the answering process cannot work with it at the moment, whatever the cluster says; null when nothing is known
    /// against it.
    pub unavailable: Option<String>,
    /// As they were sent, to be changed and sent again; null for a cluster of the file.
    #[schema(value_type = Option<ClusterSettings>)]
    pub settings: Option<Value>,
    /// The login name there.
    pub user: String,
    /// The login hosts, the preferred one first, as the answering process has found them.
    pub login_hosts: Vec<LoginHostView>,
    /// `open` while every login host is left alone after failures; `closed` otherwise.
    pub breaker: BreakerState,
    /// The directory below which specs, scripts, logs and results lie.
    pub base_results_dir: String,
    /// The account that is charged; null for the cluster's own default.
    pub account: Option<String>,
    /// The partitions of a job that lists none; null for the cluster's own default.
    pub partition: Option<String>,
    /// What containers see unless a job says otherwise.
    pub container_mounts: Vec<String>,
    /// What a job gets that does not say.
    pub defaults: ClusterDefaultsView,
    /// The longest time limit where the cluster has not said what its partitions allow, in hours.
    pub max_time_hours: f64,
    /// When it last said what its partitions are; null for never.
    pub partitions_fetched_on: Option<DateTime<Utc>>,
    /// How the polls fare, whichever process makes them; null before the first.
    pub poll: Option<ClusterPollView>,
    /// Slurm jobs with names of ours that nothing watches, as the last poll found them.
    pub orphans: OrphansView,
    /// What the connections of the answering process have cost. Other processes on the same database have their own.
    pub ssh: SshUseView,
}

/// Whether a cluster can be worked with.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum ClusterState {
    /// Its last answer was a proper one.
    Ok,
    /// It does not answer, or answers wrongly.
    Failing,
    /// It accepts no key that the service has: somebody has to mend that. Jobs wait.
    AuthRequired,
    /// It was not asked yet.
    Unknown,
    /// Something is missing on the service's side: see `unavailable`. Jobs wait.
    Unavailable,
}

/// Whether connecting is tried at all.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum BreakerState {
    /// It is.
    Closed,
    /// Not before the earliest `next_try_on`.
    Open,
}

/// One login host.
#[derive(Debug, Serialize, ToSchema)]
pub struct LoginHostView {
    /// `host`, or `host:port` when the port is not 22.
    pub host: String,
    /// What the last attempt to connect showed.
    pub state: HostState,
    /// Since when; null while it works or was never tried.
    pub since: Option<DateTime<Utc>>,
    /// The last failure, kept after a recovery.
    pub last_error: Option<String>,
    /// When it is tried again; null when it may be tried at once.
    pub next_try_on: Option<DateTime<Utc>>,
}

/// What a job gets that does not say.
#[derive(Debug, Serialize, ToSchema)]
pub struct ClusterDefaultsView {
    /// Nodes.
    pub num_nodes: u32,
    /// GPUs on each node.
    pub num_gpus: u32,
    /// How many GPUs a node has.
    pub max_num_gpus_per_node: u32,
    /// Processors for each node's task.
    pub cpus_per_task: u32,
    /// Slurm's limit, in hours.
    pub time_hours: f64,
    /// The job's own limit, in hours.
    pub timeout_hours: f64,
}

/// How the polls of a cluster fare.
#[derive(Debug, Serialize, ToSchema)]
pub struct ClusterPollView {
    /// The last poll that was answered properly; null for none.
    pub polled_on: Option<DateTime<Utc>>,
    /// How long ago that is, in seconds. A cluster without active jobs is not polled, so this grows while it is idle.
    pub age_seconds: Option<f64>,
    /// The time between two polls.
    pub interval_seconds: f64,
    /// How many polls were not answered since.
    pub failures: u32,
    /// Why the last one was not; null when it was.
    pub error: Option<String>,
    /// Jobs that the polls ask about.
    pub active_jobs: u64,
    /// Those of them that neither the queue nor accounting knows at the moment. After a grace each of them ends with Error.
    pub missing_jobs: u64,
    /// Whether there are active jobs, and the last proper answer is older than three polls.
    pub stale: bool,
}

/// What connections have cost since this process started.
#[derive(Debug, Serialize, ToSchema)]
pub struct SshUseView {
    /// Always `this_process`.
    pub counted: CountedView,
    /// Connections that are open now.
    pub sessions_open: usize,
    /// Attempts to connect, whether they worked or not.
    pub connects_total: u64,
    /// Commands that got an answer or an error.
    pub commands_total: u64,
    /// Commands that got an error.
    pub failures_total: u64,
    /// The same for each use. Without `worker`, the polls are another process's.
    pub by_use: Vec<LinkUseView>,
}

/// Whose connections are counted.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum CountedView {
    /// Those of the process that answers.
    ThisProcess,
}

/// The connections of one use.
#[derive(Debug, Serialize, ToSchema)]
pub struct LinkUseView {
    /// What they are for.
    pub used_for: LinkUse,
    /// Connections that are open now.
    pub sessions_open: usize,
    /// Attempts to connect, whether they worked or not.
    pub connects_total: u64,
    /// Commands that got an answer or an error.
    pub commands_total: u64,
    /// Commands that got an error.
    pub failures_total: u64,
}

/// What a view is made of beside the configuration.
pub(crate) struct ClusterFacts<'a> {
    pub(crate) is_default: bool,
    /// None for a cluster of the configuration file.
    pub(crate) kept: Option<&'a KeptFacts>,
    pub(crate) links: Vec<LinkReport>,
    pub(crate) poll: Option<&'a PollState>,
    pub(crate) partitions_fetched_on: Option<Timestamp>,
}

impl ClusterView {
    pub(crate) fn new(cluster: &Cluster, facts: ClusterFacts<'_>, now: Timestamp) -> Self {
        let ClusterFacts { is_default, kept, links, poll, partitions_fetched_on } = facts;
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
            defaults: ClusterDefaultsView {
                num_nodes: cluster.resources.nodes,
                num_gpus: cluster.resources.gpus_per_node,
                max_num_gpus_per_node: cluster.resources.max_gpus_per_node,
                cpus_per_task: cluster.resources.cpus_per_task,
                time_hours: f64::from(cluster.resources.time.minutes()) / 60.0,
                timeout_hours: f64::from(cluster.resources.soft_timeout.seconds()) / 3600.0,
            },
            max_time_hours: cluster.max_time_hours,
            partitions_fetched_on,
            poll: poll.map(|poll| ClusterPollView::new(poll, now)),
            orphans: OrphansView::new(poll.map_or(&[], |poll| &poll.orphans)),
            ssh: SshUseView::new(&links),
        }
    }
}

/// The login hosts as the first use has found them that has tried any; the worker's comes first.
fn hosts(links: &[LinkReport]) -> Vec<&HostReport> {
    let has_tried = |link: &&LinkReport| link.hosts.iter().any(|host| host.state != HostState::Untried);
    let telling = links.iter().find(has_tried).or_else(|| links.first());
    telling.into_iter().flat_map(|link| &link.hosts).collect()
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
            next_try_on: host.retry_in.map(|duration| now + delta(duration)),
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
    fn new(links: &[LinkReport]) -> Self {
        let total = |number: fn(&LinkReport) -> u64| links.iter().map(number).sum();
        Self {
            counted: CountedView::ThisProcess,
            sessions_open: links.iter().map(|link| link.sessions_open).sum(),
            connects_total: total(|link| link.connects_total),
            commands_total: total(|link| link.commands_total),
            failures_total: total(|link| link.failures_total),
            by_use: links
                .iter()
                .map(|link| LinkUseView {
                    used_for: link.used_for,
                    sessions_open: link.sessions_open,
                    connects_total: link.connects_total,
                    commands_total: link.commands_total,
                    failures_total: link.failures_total,
                })
                .collect(),
        }
    }
}
