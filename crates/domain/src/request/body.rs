//! The document of `POST /jobs`, as a caller writes it. Nothing here is believed yet: see `spec`.

use std::collections::BTreeMap;

use serde::{Deserialize, Deserializer};
use serde_json::{Map, Value};
use utoipa::ToSchema;
use uuid::Uuid;

use crate::request::webhook::WebhookRequest;

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
    #[serde(default, deserialize_with = "null_is_none_given")]
    #[schema(value_type = Option<BTreeMap<String, String>>)]
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
    #[serde(default, deserialize_with = "null_is_none_given")]
    #[schema(value_type = Option<Object>, write_only)]
    pub cloud_metadata: Map<String, Value>,
    /// Environment of the job. Values whose key says that they are secret are treated as such.
    #[serde(default, deserialize_with = "null_is_none_given")]
    #[schema(value_type = Option<BTreeMap<String, String>>)]
    pub docker_env_vars: BTreeMap<String, String>,
    /// Environment of the job whose values are sealed at rest and never returned.
    #[serde(default, deserialize_with = "null_is_none_given")]
    #[schema(value_type = Option<BTreeMap<String, String>>, write_only)]
    pub secret_env_vars: BTreeMap<String, String>,
    /// Files and directories on the cluster's shared file system that must be there before the job is staged:
    /// `lustre:///path`, `slurm:///path` or `/path`. Data sets named in `specs` need not be repeated.
    #[serde(default, deserialize_with = "null_is_none_given")]
    #[schema(value_type = Option<Vec<String>>, max_items = 1000)]
    pub inputs: Vec<String>,
    /// A shell text, run by `bash -euo pipefail`.
    #[schema(max_length = 262_144)]
    pub command: Option<String>,
    #[serde(default, deserialize_with = "null_is_none_given")]
    #[schema(value_type = Option<ResourcesRequest>)]
    pub resources: ResourcesRequest,
    /// TAO's other spelling of `resources.num_gpus`.
    pub num_gpu: Option<u32>,
    #[serde(default, deserialize_with = "null_is_none_given")]
    #[schema(value_type = Option<ContainerRequest>)]
    pub container: ContainerRequest,
    #[serde(default, deserialize_with = "null_is_none_given")]
    #[schema(value_type = Option<RetryBudget>)]
    pub retry: RetryBudget,
    /// Whether Slurm itself may start the job again after a node failure or preemption, under the same Slurm id.
    /// Default: the cluster's, which is true.
    pub use_requeue: Option<bool>,
    /// A running job that adds no status line, log byte or result file for so many minutes is canceled on the
    /// cluster and ends in `Error`. Default: no such limit.
    #[schema(minimum = 1, maximum = 525_600)]
    pub timeout_minutes: Option<u32>,
    #[serde(default, deserialize_with = "null_is_none_given")]
    #[schema(value_type = Option<BackendDetails>)]
    pub backend_details: BackendDetails,
    /// Who is told of each change of the job's status. Default: whom the caller's token names, if it does. Not part of the
    /// job: nothing of it is in any answer about the job, but in that of `/jobs/{id}/webhook`.
    #[schema(write_only)]
    pub webhook: Option<WebhookRequest>,
}

/// Generated clients write `null` for an object that they leave out.
fn null_is_none_given<'de, D, T>(deserializer: D) -> Result<T, D::Error>
where
    D: Deserializer<'de>,
    T: Deserialize<'de> + Default,
{
    Ok(Option::deserialize(deserializer)?.unwrap_or_default())
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
    /// The port at which the nodes of a job meet on the first of them. Default 29500.
    #[schema(minimum = 1024, maximum = 65535)]
    pub master_port: Option<u32>,
}

/// How the container is set up.
#[derive(Debug, Clone, Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ContainerRequest {
    /// `/path`, `/path:/inside` or `/path:/inside:ro`. Default: the cluster's, which is `/lustre`.
    pub mounts: Option<Vec<String>>,
    /// Convert the image to a SquashFS file once, before the job starts. Default: the cluster's, which is true.
    pub use_sqsh: Option<bool>,
    /// Fail the job when the conversion fails, instead of running the image itself. Default: the cluster's, which
    /// is false.
    pub require_sqsh: Option<bool>,
    /// Convert an image tagged `latest` anew although it was converted before. Default: the cluster's, which is
    /// false.
    pub force_reconvert_latest: Option<bool>,
}

impl ContainerRequest {
    /// Whether any field is given.
    pub(crate) fn says_something(&self) -> bool {
        let Self { mounts, use_sqsh, require_sqsh, force_reconvert_latest } = self;
        mounts.is_some() || use_sqsh.is_some() || require_sqsh.is_some() || force_reconvert_latest.is_some()
    }
}

/// How often the job goes again by itself.
#[derive(Debug, Clone, Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct RetryBudget {
    /// Attempts after the first, for failures of the infrastructure; a fault of the job's own is never retried.
    /// Default: the cluster's, which is 10.
    #[schema(maximum = 100)]
    pub max_retries: Option<u32>,
}

/// TAO's `backend_details`.
#[derive(Debug, Clone, Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct BackendDetails {
    /// Always `slurm`.
    #[serde(default, deserialize_with = "null_is_none_given")]
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
