//! The body of `POST /jobs`, before validation (see `spec`).

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
    /// The caller's own UUID for the job. Default: a new one.
    pub id: Option<Uuid>,
    /// A name for people.
    #[schema(max_length = 500)]
    pub name: Option<String>,
    /// Labels for people and filters.
    #[serde(default, deserialize_with = "null_as_default")]
    #[schema(value_type = Option<BTreeMap<String, String>>)]
    pub labels: BTreeMap<String, String>,
    /// The container image. Required for a TAO job; a `command` without one runs on the node itself.
    pub image: Option<String>,
    /// TAO's network architecture, such as `classification_pyt`.
    pub network_arch: Option<String>,
    /// TAO's action, such as `train`.
    pub action: Option<String>,
    /// The experiment's specification; the TAO container gets it as a file.
    #[schema(value_type = Option<Object>)]
    pub specs: Option<Map<String, Value>>,
    /// TAO's workspace details and credentials. Sealed at rest, and never returned.
    #[serde(default, deserialize_with = "null_as_default")]
    #[schema(value_type = Option<Object>, write_only)]
    pub cloud_metadata: Map<String, Value>,
    /// Environment variables of the job. Values with a secret-looking key are treated as secret.
    #[serde(default, deserialize_with = "null_as_default")]
    #[schema(value_type = Option<BTreeMap<String, String>>)]
    pub docker_env_vars: BTreeMap<String, String>,
    /// Secret environment variables of the job. The values are sealed at rest and never returned.
    #[serde(default, deserialize_with = "null_as_default")]
    #[schema(value_type = Option<BTreeMap<String, String>>, write_only)]
    pub secret_env_vars: BTreeMap<String, String>,
    /// Files and directories on the cluster's shared file system that must exist before the job is staged:
    /// `lustre:///path`, `slurm:///path` or `/path`. Data sets in `specs` need not be repeated.
    #[serde(default, deserialize_with = "null_as_default")]
    #[schema(value_type = Option<Vec<String>>, max_items = 1000)]
    pub inputs: Vec<String>,
    /// A shell script, run by `bash -euo pipefail`.
    #[schema(max_length = 262_144)]
    pub command: Option<String>,
    #[serde(default, deserialize_with = "null_as_default")]
    #[schema(value_type = Option<ResourcesRequest>)]
    pub resources: ResourcesRequest,
    /// TAO's other name for `resources.num_gpus`.
    pub num_gpu: Option<u32>,
    #[serde(default, deserialize_with = "null_as_default")]
    #[schema(value_type = Option<ContainerRequest>)]
    pub container: ContainerRequest,
    #[serde(default, deserialize_with = "null_as_default")]
    #[schema(value_type = Option<RetryBudget>)]
    pub retry: RetryBudget,
    /// Whether Slurm may requeue the job after a node failure or preemption, under the same Slurm id.
    /// Default: the cluster's setting, initially true.
    pub use_requeue: Option<bool>,
    /// The activity timeout: a running job that adds no status line, log output or result file for this many minutes is
    /// canceled on the cluster and ends in `Error`. Default: no such limit.
    #[schema(minimum = 1, maximum = 525_600)]
    pub timeout_minutes: Option<u32>,
    #[serde(default, deserialize_with = "null_as_default")]
    #[schema(value_type = Option<BackendDetails>)]
    pub backend_details: BackendDetails,
    /// The receiver of status changes. Default: the webhook of the caller's token, if it has one. Only
    /// `/jobs/{id}/webhook` returns information about it.
    #[schema(write_only)]
    pub webhook: Option<WebhookRequest>,
}

/// Generated clients send `null` for an object that is not set.
fn null_as_default<'de, D, T>(deserializer: D) -> Result<T, D::Error>
where
    D: Deserializer<'de>,
    T: Deserialize<'de> + Default,
{
    Ok(Option::deserialize(deserializer)?.unwrap_or_default())
}

/// The resources of a job.
#[derive(Debug, Clone, Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ResourcesRequest {
    /// The number of nodes. Default: 1.
    pub num_nodes: Option<u32>,
    /// GPUs: per node if below `max_num_gpus_per_node`, otherwise in total. Default: 4.
    pub num_gpus: Option<u32>,
    /// GPUs on each node, set explicitly.
    pub gpus_per_node: Option<u32>,
    /// The number of GPUs of a node of this cluster. Default: 8.
    pub max_num_gpus_per_node: Option<u32>,
    /// Processors of the task on each node. Default: 16.
    pub cpus_per_task: Option<u32>,
    /// Slurm's time limit, in hours. Default: 4.
    pub time_hours: Option<f64>,
    /// The job's own time limit, in hours. Default: 0.2 less than `time_hours`.
    pub timeout_hours: Option<f64>,
    /// The rendezvous port on the job's first node. Default: 29500.
    #[schema(minimum = 1024, maximum = 65535)]
    pub master_port: Option<u32>,
}

/// The configuration of the container.
#[derive(Debug, Clone, Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ContainerRequest {
    /// `/path`, `/path:/inside` or `/path:/inside:ro`. Default: the cluster's setting, initially `/lustre`.
    pub mounts: Option<Vec<String>>,
    /// Convert the image to a SquashFS file once, before the job starts. Default: the cluster's setting, initially
    /// true.
    pub use_sqsh: Option<bool>,
    /// Fail the job if the conversion fails, instead of running the registry image. Default: the cluster's setting,
    /// initially false.
    pub require_sqsh: Option<bool>,
    /// Convert an image with the tag `latest` again even if its file exists. Default: the cluster's setting, initially
    /// false.
    pub force_reconvert_latest: Option<bool>,
}

impl ContainerRequest {
    /// Whether any field is given.
    pub(crate) fn is_given(&self) -> bool {
        let Self { mounts, use_sqsh, require_sqsh, force_reconvert_latest } = self;
        mounts.is_some() || use_sqsh.is_some() || require_sqsh.is_some() || force_reconvert_latest.is_some()
    }
}

/// The automatic retries of a job.
#[derive(Debug, Clone, Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct RetryBudget {
    /// Retries after infrastructure failures. A failure of the job itself is never retried.
    /// Default: the cluster's setting, initially 10.
    #[schema(maximum = 100)]
    pub max_retries: Option<u32>,
}

/// TAO's `backend_details`.
#[derive(Debug, Clone, Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct BackendDetails {
    /// Always `slurm`.
    #[serde(default, deserialize_with = "null_as_default")]
    pub backend_type: BackendType,
    /// Comma-separated partitions; Slurm uses the one that starts the job first.
    pub partition: Option<String>,
    /// The configured cluster that runs the job.
    pub cluster_name: Option<String>,
}

/// The only backend of this service.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum BackendType {
    #[default]
    Slurm,
}
