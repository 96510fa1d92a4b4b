//! MPI: Slurm starts each process itself.

use slurm::MpiPlugin;

use super::{Launcher, Site, Start, Value};
use serde::{Deserialize, Serialize};

/// A process for each task, which Slurm itself starts and MPI connects.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Mpi {
    /// Slurm's default if absent.
    pub plugin: Option<MpiPlugin>,
}

impl Launcher for Mpi {
    fn starts(&self, site: &Site<'_>) -> Vec<Start> {
        let mut start = Start::of(site);
        start.options.extend(self.plugin.iter().map(|plugin| format!("--mpi={plugin}")));
        start.ranks.extend(["--node-rank", "--task-rank"]);
        start.set("NNODES", Value::Text(site.nodes.count.to_string()));
        start.set("WORLD_SIZE", Value::Text((site.nodes.count * site.tasks_per_node).to_string()));
        start.meet(site);
        vec![start]
    }

    fn hides_slurm(&self) -> bool {
        false
    }
}
