//! The body of `POST /jobs` as the caller sends it. Its values are checked in `spec`.

use std::collections::BTreeMap;

use serde::{Deserialize, Deserializer};
use serde_json::{Map, Value};
use utoipa::ToSchema;
use uuid::Uuid;

use crate::request::webhook::WebhookRequest;

/// A job: either `network_arch` and `action`, which run the TAO container's entry point, or `command`.
#[derive(Debug, Clone, Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct JobRequest {
    /// The caller's own UUID for the job. Default: a new one.
    pub id: Option<Uuid>,
    /// A display name.
    #[schema(max_length = 500)]
    pub name: Option<String>,
    /// Labels, for display and for filters.
    #[serde(default, deserialize_with = "null_as_default")]
    #[schema(value_type = Option<BTreeMap<String, String>>)]
    pub labels: BTreeMap<String, String>,
    /// The container image. Required for a TAO job. A `command` without an image runs on the node itself.
    pub image: Option<String>,
    /// TAO's network architecture, such as `classification_pyt`.
    pub network_arch: Option<String>,
    /// TAO's action, such as `train`.
    pub action: Option<String>,
    /// The experiment's specification, passed to the TAO container as a file.
    #[schema(value_type = Option<Object>)]
    pub specs: Option<Map<String, Value>>,
    /// TAO's workspace details and credentials. They are encrypted at rest and never returned.
    #[serde(default, deserialize_with = "null_as_default")]
    #[schema(value_type = Option<Object>, write_only)]
    pub cloud_metadata: Map<String, Value>,
    /// Environment variables of the job's program; values may have any characters but NUL. A value is secret if its name indicates
    /// it, such as `*TOKEN*` or `*PASSWORD*`.
    #[serde(default, deserialize_with = "null_as_default")]
    #[schema(value_type = Option<BTreeMap<String, String>>)]
    pub docker_env_vars: BTreeMap<String, String>,
    /// Secret environment variables of the job. Their values are encrypted at rest and never returned.
    #[serde(default, deserialize_with = "null_as_default")]
    #[schema(value_type = Option<BTreeMap<String, String>>, write_only)]
    pub secret_env_vars: BTreeMap<String, String>,
    /// Files and directories that must exist on the cluster's shared file system before the job is staged:
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
    /// TAO's alias for `resources.num_gpus`.
    pub num_gpu: Option<u32>,
    #[serde(default, deserialize_with = "null_as_default")]
    #[schema(value_type = Option<ContainerRequest>)]
    pub container: ContainerRequest,
    #[serde(default, deserialize_with = "null_as_default")]
    #[schema(value_type = Option<RetryBudget>)]
    pub retry: RetryBudget,
    /// Whether Slurm may requeue the job after a node failure or preemption, under the same Slurm id.
    /// Default: the cluster's setting, by default true.
    pub use_requeue: Option<bool>,
    /// A running job that writes no status line, log byte or result file for this many minutes is canceled and ends in
    /// `Error`. Default: no limit.
    #[schema(minimum = 1, maximum = 525_600)]
    pub timeout_minutes: Option<u32>,
    #[serde(default, deserialize_with = "null_as_default")]
    #[schema(value_type = Option<BackendDetails>)]
    pub backend_details: BackendDetails,
    /// The receiver of the job's status changes. Default: the webhook of the caller's token, if it has one. Only the answers of
    /// `/jobs/{id}/webhook` show it.
    #[schema(write_only)]
    pub webhook: Option<WebhookRequest>,
}

/// Generated clients send `null` for an omitted object.
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
    /// The number of nodes. Default: the cluster's setting, by default 1.
    pub num_nodes: Option<u32>,
    /// The number of GPUs by TAO's rule; prefer `gpus_per_node`. Below `max_num_gpus_per_node` it is the number per node.
    /// From there on the job gets whole nodes: as many as hold this total, and at least `num_nodes`. A warning says if the
    /// job gets another total. Default: the cluster's setting, by default 4.
    pub num_gpus: Option<u32>,
    /// The number of GPUs on each of `num_nodes` nodes, exactly. At most `max_num_gpus_per_node`.
    pub gpus_per_node: Option<u32>,
    /// The number of GPUs in a node of the cluster. Default: the cluster's setting, by default 8.
    pub max_num_gpus_per_node: Option<u32>,
    /// CPUs of each node's task. Default: the cluster's setting, by default 16.
    pub cpus_per_task: Option<u32>,
    /// The Slurm time limit, in hours. Default: the cluster's setting, by default 4.
    pub time_hours: Option<f64>,
    /// The soft time limit of the job, in hours. Default: 0.2 hours less than `time_hours`.
    pub timeout_hours: Option<f64>,
    /// The rendezvous port on the job's first node. Default: 29500.
    #[schema(minimum = 1024, maximum = 65535)]
    pub master_port: Option<u32>,
}

/// The container settings.
#[derive(Debug, Clone, Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ContainerRequest {
    /// `/path`, `/path:/inside` or `/path:/inside:ro`. Default: the cluster's setting, by default `/lustre`.
    pub mounts: Option<Vec<String>>,
    /// Convert the image to a shared SquashFS file before the job starts. Default: the cluster's setting, by default true.
    pub use_sqsh: Option<bool>,
    /// Fail the job if the conversion fails, instead of running the registry image. Default: the cluster's setting, by default
    /// false.
    pub require_sqsh: Option<bool>,
    /// Convert an image with the tag `latest` again even if a converted file exists. Default: the cluster's setting, by default
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

/// The retry budget of a job.
#[derive(Debug, Clone, Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct RetryBudget {
    /// The number of attempts after the first, for infrastructure failures; the job's own failures are not retried.
    /// Default: the cluster's setting, by default 10.
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
    /// Comma-separated partitions; Slurm uses the one that can start the job first.
    pub partition: Option<String>,
    /// The name of the cluster to run on.
    pub cluster_name: Option<String>,
}

/// The backend of this service.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum BackendType {
    #[default]
    Slurm,
}
