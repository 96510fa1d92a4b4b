//! The partitions of a cluster.

use std::collections::{BTreeMap, BTreeSet};

use serde::Deserialize;

use super::{Moment, Text};

#[derive(Debug, Deserialize)]
pub(crate) struct PartitionList {
    pub(crate) fetched_on: Option<Moment>,
    pub(crate) stale: bool,
    pub(crate) error: Option<Text>,
    pub(crate) partitions: Vec<Partition>,
}

#[derive(Debug, Deserialize)]
pub(crate) struct Partition {
    pub(crate) name: Text,
    pub(crate) is_default: bool,
    pub(crate) availability: Text,
    pub(crate) time_limit: Option<Text>,
    pub(crate) max_nodes: Option<u32>,
    pub(crate) nodes: u32,
    pub(crate) nodes_by_state: BTreeMap<Text, u32>,
    pub(crate) gpus_per_node: Option<u32>,
    pub(crate) gpu_types: BTreeSet<Text>,
    pub(crate) cpus_per_node: Option<u32>,
    pub(crate) memory_mib_per_node: Option<u64>,
}
