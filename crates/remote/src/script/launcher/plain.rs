//! One process on the component's first node.

use super::{Launcher, Nodes, Site, Start};

/// One process on the component's first node.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Plain;

impl Launcher for Plain {
    fn starts(&self, site: &Site<'_>) -> Vec<Start> {
        let nodes = Nodes { count: 1, ..site.nodes };
        vec![Start { nodes, tasks_per_node: 1, ..Start::of(site) }]
    }
}
