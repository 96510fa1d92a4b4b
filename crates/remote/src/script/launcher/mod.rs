//! How a component becomes processes. Each launcher is a file here.

mod per_node;
mod plain;

use std::fmt::Debug;

use slurm::EnvKey;

use super::parts::{Kind, Nodes, Value};

pub use per_node::PerNode;
pub use plain::Plain;

/// Makes processes of a component.
pub trait Launcher: Debug + Send + Sync {
    /// The steps of Slurm that it needs: one, unless its parts end apart.
    fn starts(&self, site: &Site<'_>) -> Vec<Start>;
}

/// What a component has.
#[derive(Debug, Clone, Copy)]
pub struct Site<'a> {
    /// Its nodes.
    pub nodes: Nodes,
    /// The tasks of each node that were asked for.
    pub tasks_per_node: u32,
    /// The GPUs of each node.
    pub gpus_per_node: u32,
    /// The nodes of the whole job.
    pub job_nodes: u32,
    /// A port on the first node.
    pub port: u16,
    /// A name that no other attempt has.
    pub run: &'a str,
}

/// One step of Slurm.
#[derive(Debug, Clone)]
pub struct Start {
    /// What its name has after that of the component.
    pub suffix: &'static str,
    /// What it is to the job; absent for what the component is.
    pub kind: Option<Kind>,
    /// Its nodes.
    pub nodes: Nodes,
    /// Its tasks on each node.
    pub tasks_per_node: u32,
    /// Further options of srun.
    pub options: Vec<String>,
    /// The words of the entry shell that give a task its numbers: `--node-rank`, `--task-rank`.
    pub ranks: Vec<&'static str>,
    /// The variables of its tasks.
    pub variables: Vec<(EnvKey, Value)>,
    /// What stands before the component's command.
    pub program: Vec<String>,
}

impl Start {
    /// The component's command, on all of its nodes.
    fn of(site: &Site<'_>) -> Self {
        Self {
            suffix: "",
            kind: None,
            nodes: site.nodes,
            tasks_per_node: site.tasks_per_node,
            options: Vec::new(),
            ranks: Vec::new(),
            variables: Vec::new(),
            program: Vec::new(),
        }
    }

    fn set(&mut self, key: &str, value: Value) {
        if let Ok(key) = key.parse() {
            self.variables.push((key, value));
        }
    }
}
