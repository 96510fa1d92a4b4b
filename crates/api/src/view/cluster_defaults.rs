//! The defaults of a cluster's jobs.

use domain::{Cluster, ContainerRuntime};
use serde::Serialize;
use utoipa::ToSchema;

use super::{PlacementView, QueueView};

/// The defaults of a cluster's jobs.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct ClusterDefaultsView {
    /// The number of nodes.
    pub num_nodes: u32,
    /// The number of GPUs per node.
    pub num_gpus: u32,
    /// The number of GPUs in a node.
    pub max_num_gpus_per_node: u32,
    /// Tasks of each node.
    pub tasks_per_node: u32,
    /// CPUs of each task.
    pub cpus_per_task: u32,
    /// The Slurm time limit, in hours.
    pub time_hours: f64,
    /// The soft time limit of the job, in hours.
    pub timeout_hours: f64,
    /// The option of sbatch that asks for GPUs: `gres` or `gpus-per-node`.
    pub gpu_request: String,
    /// What makes the containers of jobs.
    pub container_runtime: ContainerRuntime,
    /// The plugin for jobs with MPI; null for Slurm's default.
    pub mpi_plugin: Option<String>,
    /// Whether nodes are exclusive; null for nodes whose GPUs a job has all.
    pub exclusive: Option<bool>,
    /// Memory, resources and nodes.
    #[serde(flatten)]
    pub placement: PlacementView,
    /// Account, QOS and other options.
    #[serde(flatten)]
    pub queue: QueueView,
}

impl From<&Cluster> for ClusterDefaultsView {
    fn from(cluster: &Cluster) -> Self {
        Self {
            num_nodes: cluster.resources.nodes,
            num_gpus: cluster.resources.gpus_per_node,
            max_num_gpus_per_node: cluster.resources.max_gpus_per_node,
            tasks_per_node: cluster.resources.tasks_per_node,
            cpus_per_task: cluster.resources.cpus_per_task,
            time_hours: f64::from(cluster.resources.time.minutes()) / 60.0,
            timeout_hours: f64::from(cluster.resources.soft_timeout.seconds()) / 3600.0,
            gpu_request: cluster.submit.gpu_request.to_string(),
            container_runtime: cluster.images.policy.runtime,
            mpi_plugin: cluster.submit.mpi_plugin.as_ref().map(ToString::to_string),
            exclusive: cluster.submit.exclusive,
            placement: PlacementView::from(&cluster.submit.options),
            queue: QueueView {
                account: cluster.account.as_ref().map(ToString::to_string),
                ..QueueView::from(&cluster.submit.options)
            },
        }
    }
}
