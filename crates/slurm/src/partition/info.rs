//! A partition of a cluster.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use super::associations::Associations;
use crate::{Partition, TimeLimit};

/// A partition: its limits, and its nodes by kind and state.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PartitionInfo {
    /// Its name.
    pub name: Partition,
    /// Whether it is the default partition.
    pub is_default: bool,
    /// sinfo's availability: `up`, `down` (jobs stay pending), `drain` (no new jobs), `inact` (neither).
    pub availability: String,
    /// The longest time limit of a job; `None` if sinfo's output was not understood.
    pub time_limit: Option<TimeLimit>,
    /// The default time limit; `None` if it is [`time_limit`](Self::time_limit).
    pub default_time: Option<TimeLimit>,
    /// The most nodes of a job; `None` for no limit.
    pub max_nodes: Option<u32>,
    /// The accounts that may use it; `None` for all.
    pub allow_accounts: Option<Vec<String>>,
    /// What the user may charge its jobs there to; `None` if it is not known, or without accounting.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub associations: Option<Associations>,
    /// Its nodes.
    pub nodes: Vec<NodeGroup>,
}

/// Nodes of one partition with the same hardware and state.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct NodeGroup {
    /// sinfo's state, such as `idle`; with a trailing `*` the nodes do not answer (sinfo(1), NODE STATE CODES).
    pub state: String,
    /// The number of nodes.
    pub count: u32,
    /// Processors of each, as Slurm counts them.
    pub cpus: u32,
    /// Memory of each, in MiB.
    pub memory_mib: u64,
    /// GPUs of each.
    pub gpus: u32,
    /// The types of its GPUs, if the site defines them.
    pub gpu_types: BTreeSet<String>,
    /// The amount of each generic resource of each node, by `name` or `name:type`; `None` if it is not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gres: Option<BTreeMap<String, u64>>,
    /// Their features; `None` if they are not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub features: Option<BTreeSet<String>>,
    /// Whether some of the nodes have more processors or memory than [`cpus`](Self::cpus) and
    /// [`memory_mib`](Self::memory_mib).
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub some_have_more: bool,
}

impl PartitionInfo {
    /// The number of nodes.
    pub fn node_count(&self) -> u32 {
        self.nodes.iter().fold(0, |sum, group| sum.saturating_add(group.count))
    }

    /// The number of nodes in each state.
    pub fn nodes_by_state(&self) -> BTreeMap<&str, u32> {
        let mut states = BTreeMap::new();
        for group in self.nodes.iter().filter(|group| group.count > 0) {
            let count: &mut u32 = states.entry(group.state.as_str()).or_default();
            *count = count.saturating_add(group.count);
        }
        states
    }

    /// The most GPUs of one node; `None` if the partition has no nodes.
    pub fn most_gpus_per_node(&self) -> Option<u32> {
        self.nodes.iter().filter(|group| group.count > 0).map(|group| group.gpus).max()
    }
}
