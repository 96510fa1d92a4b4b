//! Partitions.

use std::collections::{BTreeMap, BTreeSet};

use chrono::{DateTime, Utc};
use domain::Timestamp;
use persistence::KnownPartitions;
use serde::Serialize;
use slurm::{NodeGroup, PartitionInfo, TimeLimit};
use utoipa::ToSchema;

/// A cluster's partitions.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct PartitionList {
    /// When the cluster last reported them; null if it never has, and the list is empty then.
    pub fetched_on: Option<DateTime<Utc>>,
    /// Whether the report is so old that three requests since must have failed.
    pub stale: bool,
    /// Why the last request failed; null if it succeeded.
    pub error: Option<String>,
    /// When the last request failed.
    pub error_on: Option<DateTime<Utc>>,
    /// Whether Slurm refuses a job that exceeds the limits of any one of its partitions (`EnforcePartLimits=ALL`).
    pub enforce_all_limits: bool,
    /// Slurm's `MaxArraySize`: a job with more tasks is submitted in several arrays. Null if the cluster has not reported it.
    pub max_array_size: Option<u32>,
    /// The partitions in the site's order.
    pub partitions: Vec<PartitionView>,
}

/// A partition.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct PartitionView {
    /// The partition's name.
    pub name: String,
    /// Whether this is the partition of jobs that name none.
    pub is_default: bool,
    /// `up`, `down` (jobs wait), `drain` (no new jobs) or `inact` (neither).
    pub availability: String,
    /// The longest time limit as Slurm writes it; `UNLIMITED` for none, null if it is unknown.
    pub time_limit: Option<String>,
    /// The same in hours; null if there is none or it is unknown.
    pub time_limit_hours: Option<f64>,
    /// The time limit of a job that requests none, in hours; null for the longest.
    pub default_time_hours: Option<f64>,
    /// The most nodes of a job; null for no limit.
    pub max_nodes: Option<u32>,
    /// The accounts that may use the partition; null for all.
    pub allow_accounts: Option<Vec<String>>,
    /// The number of nodes.
    pub nodes: u32,
    /// The number of nodes in each state, in Slurm's own words; `*` after a state means that the nodes do not respond.
    pub nodes_by_state: BTreeMap<String, u32>,
    /// The most GPUs in a node; null without nodes.
    pub gpus_per_node: Option<u32>,
    /// The GPU types, if the site names them.
    pub gpu_types: BTreeSet<String>,
    /// The most of each generic resource in a node, by `name` or `name:type`; empty if it is not known.
    pub gres: BTreeMap<String, u64>,
    /// The features of the nodes; null if they are not known.
    pub features: Option<BTreeSet<String>>,
    /// The accounts that the service's user may charge in the partition, each with its QOS; empty if they are not known.
    pub accounts: BTreeMap<String, BTreeSet<String>>,
    /// The most CPUs in a node; null without nodes.
    pub cpus_per_node: Option<u32>,
    /// The most memory in a node, in MiB; null without nodes.
    pub memory_mib_per_node: Option<u64>,
}

impl PartitionList {
    pub(crate) fn new(known: Option<&KnownPartitions>, now: Timestamp) -> Self {
        let (error, error_on) = known.and_then(|known| known.error.clone()).unzip();
        Self {
            fetched_on: known.and_then(|known| known.fetched_at),
            stale: known.is_none_or(|known| known.is_stale(now)),
            error,
            error_on,
            enforce_all_limits: known.is_some_and(|known| known.all_must_allow),
            max_array_size: known.and_then(|known| known.max_array_size),
            partitions: known
                .into_iter()
                .flat_map(|known| &known.partitions)
                .map(PartitionView::from)
                .collect(),
        }
    }
}

impl From<&PartitionInfo> for PartitionView {
    fn from(partition: &PartitionInfo) -> Self {
        let there = || partition.nodes.iter().filter(|group| group.count > 0);
        Self {
            name: partition.name.to_string(),
            is_default: partition.is_default,
            availability: partition.availability.clone(),
            time_limit: partition.time_limit.map(|limit| limit.to_string()),
            time_limit_hours: partition.time_limit.and_then(hours),
            default_time_hours: partition.default_time.and_then(hours),
            max_nodes: partition.max_nodes,
            allow_accounts: partition.allow_accounts.clone(),
            nodes: partition.node_count(),
            nodes_by_state: partition
                .nodes_by_state()
                .into_iter()
                .map(|(state, count)| (state.to_owned(), count))
                .collect(),
            gpus_per_node: partition.most_gpus_per_node(),
            gpu_types: there().flat_map(|group| group.gpu_types.iter().cloned()).collect(),
            gres: most_of_each(there()),
            features: there()
                .map(|group| group.features.as_ref())
                .collect::<Option<Vec<_>>>()
                .map(|sets| sets.into_iter().flatten().cloned().collect()),
            accounts: partition
                .associations
                .as_ref()
                .map(|associations| associations.accounts.clone())
                .unwrap_or_default(),
            cpus_per_node: there().map(|group| group.cpus).max(),
            memory_mib_per_node: there().map(|group| group.memory_mib).max(),
        }
    }
}

fn most_of_each<'a>(groups: impl Iterator<Item = &'a NodeGroup>) -> BTreeMap<String, u64> {
    let mut most = BTreeMap::new();
    for (name, amount) in groups.filter_map(|group| group.gres.as_ref()).flatten() {
        let known: &mut u64 = most.entry(name.clone()).or_default();
        *known = (*known).max(*amount);
    }
    most
}

fn hours(limit: TimeLimit) -> Option<f64> {
    match limit {
        TimeLimit::Limited(time) => Some(f64::from(time.minutes()) / 60.0),
        TimeLimit::Unlimited => None,
    }
}
