//! How many nodes, GPUs, processors and hours a job has.

use serde::{Deserialize, Serialize};
use slurm::{RunTime, WallTime};

/// The resources of a job.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Resources {
    pub nodes: u32,
    pub gpus_per_node: u32,
    pub max_gpus_per_node: u32,
    /// Tasks of each node. A job of an earlier release has one.
    #[serde(default = "one")]
    pub tasks_per_node: u32,
    pub cpus_per_task: u32,
    /// No other job shares the nodes. True whenever whole nodes are requested.
    pub exclusive: bool,
    pub time: WallTime,
    /// The job's own limit, below Slurm's, so that it ends in order.
    pub soft_timeout: RunTime,
}

fn one() -> u32 {
    1
}

impl Resources {
    /// The smallest number of hours: less than a second.
    pub const LEAST_HOURS: f64 = 0.0001;
    /// The largest number of hours: more than a century, which our clocks and Slurm's can represent.
    pub const MOST_HOURS: f64 = 1_000_000.0;

    pub fn total_gpus(&self) -> u32 {
        self.nodes.saturating_mul(self.gpus_per_node)
    }

    /// TAO's packaged defaults: 1 node, 4 GPUs of at most 8, 16 processors, a limit of 4 hours and a timeout of 3.8 hours.
    pub fn packaged() -> Result<Self, slurm::InvalidName> {
        Ok(Self {
            nodes: 1,
            gpus_per_node: 4,
            max_gpus_per_node: 8,
            tasks_per_node: 1,
            cpus_per_task: 16,
            exclusive: false,
            time: WallTime::from_hours(4.0)?,
            soft_timeout: RunTime::from_hours(3.8)?,
        })
    }
}

/// `1 node`, `2 nodes`.
#[must_use]
pub fn counted(number: u64, what: &str) -> String {
    format!("{number} {what}{}", if number == 1 { "" } else { "s" })
}
