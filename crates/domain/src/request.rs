//! The document of `POST /jobs`, as a caller writes it. Nothing here is believed yet: see `spec`.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::{Map, Value};
use utoipa::ToSchema;
use uuid::Uuid;

/// A job to run: either `network_arch` and `action` (the TAO container's entry point), or `command`.
#[derive(Debug, Clone, Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct JobRequest {
    /// The caller's own UUID for the job; one is made when it is left out.
    pub id: Option<Uuid>,
    /// A name for people.
    #[schema(max_length = 500)]
    pub name: Option<String>,
    /// Labels for people and filters.
    #[serde(default)]
    pub labels: BTreeMap<String, String>,
    /// The container image. Required for a TAO job; a `command` without one runs on the node itself.
    pub image: Option<String>,
    /// TAO's network architecture, such as `classification_pyt`.
    pub network_arch: Option<String>,
    /// TAO's action, such as `train`.
    pub action: Option<String>,
    /// The experiment's specification, given to the TAO container as a file.
    #[schema(value_type = Option<Object>)]
    pub specs: Option<Map<String, Value>>,
    /// TAO's workspace details and credentials. Sealed at rest, and never returned.
    #[serde(default)]
    #[schema(value_type = Object, write_only)]
    pub cloud_metadata: Map<String, Value>,
    /// Environment of the job. Values whose key says that they are secret are treated as such.
    #[serde(default)]
    pub docker_env_vars: BTreeMap<String, String>,
    /// Environment of the job whose values are sealed at rest and never returned.
    #[serde(default)]
    #[schema(write_only)]
    pub secret_env_vars: BTreeMap<String, String>,
    /// A shell text, run by `bash -euo pipefail`.
    #[schema(max_length = 262_144)]
    pub command: Option<String>,
    #[serde(default)]
    pub resources: ResourcesRequest,
    /// TAO's other spelling of `resources.num_gpus`.
    pub num_gpu: Option<u32>,
    #[serde(default)]
    pub container: ContainerRequest,
    #[serde(default)]
    pub backend_details: BackendDetails,
}

/// How much of the cluster the job needs.
#[derive(Debug, Clone, Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ResourcesRequest {
    /// Nodes. Default 1.
    pub num_nodes: Option<u32>,
    /// GPUs: per node when fewer than `max_num_gpus_per_node`, else in all. Default 4.
    pub num_gpus: Option<u32>,
    /// GPUs on each node, said outright.
    pub gpus_per_node: Option<u32>,
    /// How many GPUs a node of this cluster has. Default 8.
    pub max_num_gpus_per_node: Option<u32>,
    /// Processors for each node's task. Default 16.
    pub cpus_per_task: Option<u32>,
    /// Slurm's limit, in hours. Default 4.
    pub time_hours: Option<f64>,
    /// The job's own limit, in hours; by default 0.2 less than `time_hours`.
    pub timeout_hours: Option<f64>,
}

/// How the container is set up.
#[derive(Debug, Clone, Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ContainerRequest {
    /// `/path`, `/path:/inside` or `/path:/inside:ro`. Default: the cluster's, which is `/lustre`.
    pub mounts: Option<Vec<String>>,
}

/// TAO's `backend_details`.
#[derive(Debug, Clone, Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct BackendDetails {
    /// Always `slurm`.
    #[serde(default)]
    pub backend_type: BackendType,
    /// One partition or several, parted by commas; Slurm takes the one that starts the job first.
    pub partition: Option<String>,
    /// The configured cluster to run on.
    pub cluster_name: Option<String>,
}

/// The one backend of this service.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum BackendType {
    #[default]
    Slurm,
}
