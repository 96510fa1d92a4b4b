//! The command on each node, as TAO's containers expect it.

use super::{Launcher, Site, Start, Value};

/// The command on each node. On several nodes each knows its number, and where the first one is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PerNode;

impl Launcher for PerNode {
    fn starts(&self, site: &Site<'_>) -> Vec<Start> {
        let mut start = Start::of(site);
        if site.job_nodes > 1 {
            start.ranks.push("--node-rank");
            // TAO's meaning of WORLD_SIZE.
            start.set("WORLD_SIZE", Value::Text(site.nodes.count.to_string()));
            start.set("NUM_GPU_PER_NODE", Value::Text(site.gpus_per_node.to_string()));
            start.meet(site);
        }
        vec![start]
    }
}
