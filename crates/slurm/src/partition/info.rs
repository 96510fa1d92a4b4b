//! A partition as the scheduler describes it.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use crate::{Partition, TimeLimit};

/// A partition: its limits, and its nodes by kind and state.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PartitionInfo {
    /// Its name.
    pub name: Partition,
    /// Whether jobs that name no partition go here.
    pub is_default: bool,
    /// `up`, `down` (jobs wait), `drain` (no new jobs), `inact` (neither), in sinfo's own word.
    pub availability: String,
    /// The longest time limit a job may ask for; none when sinfo did not say it in a way we know.
    pub time_limit: Option<TimeLimit>,
    /// What a job gets that asks for no time limit; none when that is [`time_limit`](Self::time_limit).
    pub default_time: Option<TimeLimit>,
    /// The most nodes a job may have; none for no limit.
    pub max_nodes: Option<u32>,
    /// The only accounts that may use it; none when all may.
    pub allow_accounts: Option<Vec<String>>,
    /// Its nodes.
    pub nodes: Vec<NodeGroup>,
}

/// Nodes of one partition that are alike, and in the same state.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct NodeGroup {
    /// sinfo's own word, such as `idle`; with `*` behind it the nodes do not answer (sinfo(1), NODE STATE CODES).
    pub state: String,
    /// How many nodes.
    pub count: u32,
    /// Processors of each, as Slurm counts them.
    pub cpus: u32,
    /// Memory of each, in MiB.
    pub memory_mib: u64,
    /// GPUs of each.
    pub gpus: u32,
    /// The kinds of its GPUs, where the site names them.
    pub gpu_types: BTreeSet<String>,
}

impl PartitionInfo {
    /// How many nodes it has.
    pub fn node_count(&self) -> u32 {
        self.nodes.iter().fold(0, |sum, group| sum.saturating_add(group.count))
    }

    /// How many nodes are in each state.
    pub fn nodes_by_state(&self) -> BTreeMap<&str, u32> {
        let mut states = BTreeMap::new();
        for group in self.nodes.iter().filter(|group| group.count > 0) {
            let count: &mut u32 = states.entry(group.state.as_str()).or_default();
            *count = count.saturating_add(group.count);
        }
        states
    }

    /// GPUs of the node that has most; none when the partition has no nodes.
    pub fn most_gpus_per_node(&self) -> Option<u32> {
        self.nodes.iter().filter(|group| group.count > 0).map(|group| group.gpus).max()
    }
}
