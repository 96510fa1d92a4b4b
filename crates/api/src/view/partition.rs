//! Partitions as callers see them.

use std::collections::{BTreeMap, BTreeSet};

use chrono::{DateTime, Utc};
use domain::Timestamp;
use persistence::KnownPartitions;
use serde::Serialize;
use slurm::{PartitionInfo, TimeLimit};
use utoipa::ToSchema;

/// A cluster's partitions.
#[derive(Debug, Serialize, ToSchema)]
pub struct PartitionList {
    /// When the cluster said so; null when it has never answered, and then there are none here.
    pub fetched_on: Option<DateTime<Utc>>,
    /// Whether that is so long ago that three questions since must have gone unanswered.
    pub stale: bool,
    /// Why the last question was not answered; null when it was.
    pub error: Option<String>,
    /// When it was not.
    pub error_on: Option<DateTime<Utc>>,
    /// Whether a job is refused that is beyond the limits of only one of its partitions (`EnforcePartLimits=ALL`).
    pub all_must_allow: bool,
    /// The partitions, in the site's order.
    pub partitions: Vec<PartitionView>,
}

/// One partition.
#[derive(Debug, Serialize, ToSchema)]
pub struct PartitionView {
    /// Its name.
    pub name: String,
    /// Whether jobs that name no partition go here.
    pub is_default: bool,
    /// `up`, `down` (jobs wait), `drain` (no new jobs) or `inact` (neither).
    pub availability: String,
    /// The longest time limit, as Slurm writes it; `UNLIMITED` for none, null when it is not known.
    pub time_limit: Option<String>,
    /// The same in hours; null when there is none, or it is not known.
    pub time_limit_hours: Option<f64>,
    /// What a job gets that asks for no time limit, in hours; null for the longest.
    pub default_time_hours: Option<f64>,
    /// The most nodes a job may have; null for no limit.
    pub max_nodes: Option<u32>,
    /// The only accounts that may use it; null when all may.
    pub allow_accounts: Option<Vec<String>>,
    /// How many nodes it has.
    pub nodes: u32,
    /// How many of them are in which state, in Slurm's own words; `*` behind one means that they do not answer.
    pub nodes_by_state: BTreeMap<String, u32>,
    /// GPUs of the node that has most; null without nodes.
    pub gpus_per_node: Option<u32>,
    /// The kinds of GPUs, where the site names them.
    pub gpu_types: BTreeSet<String>,
    /// Processors of the node that has most; null without nodes.
    pub cpus_per_node: Option<u32>,
    /// Memory of the node that has most, in MiB; null without nodes.
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
            all_must_allow: known.is_some_and(|known| known.all_must_allow),
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
            cpus_per_node: there().map(|group| group.cpus).max(),
            memory_mib_per_node: there().map(|group| group.memory_mib).max(),
        }
    }
}

fn hours(limit: TimeLimit) -> Option<f64> {
    match limit {
        TimeLimit::Limited(time) => Some(f64::from(time.minutes()) / 60.0),
        TimeLimit::Unlimited => None,
    }
}
