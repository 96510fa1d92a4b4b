//! The body of `POST /jobs` as the caller sends it. Its values are checked in `spec`.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::{Map, Value};
use utoipa::ToSchema;
use uuid::Uuid;

use crate::request::{
    array::ArrayRequest, component_body::ComponentRequest, container::ContainerRequest, files::FileRequest,
    idle::IdleRequest, launcher::LauncherBody, needs::NeedRequest, nulls::null_as_default,
    options_body::ResourcesRequest, progress::ProgressRequest, restart::RestartRequest,
    results::ResultRequest, webhook::WebhookRequest,
};

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
    pub array: Option<ArrayRequest>,
    /// Jobs that must have come so far before this one is submitted. If that cannot happen any more, it ends in `Canceled`.
    #[serde(default, deserialize_with = "null_as_default")]
    #[schema(value_type = Option<Vec<NeedRequest>>, max_items = 1000)]
    pub needs: Vec<NeedRequest>,
    /// Programs in the place of `command`, one after the other: the job ends with the last of them, or with the first that
    /// fails.
    #[serde(default, deserialize_with = "null_as_default")]
    #[schema(value_type = Option<Vec<ComponentRequest>>, max_items = 24)]
    pub steps: Vec<ComponentRequest>,
    /// Programs beside the steps. The job ends if one of them ends before the steps. Steps have the names of its nodes: a service
    /// `model` is at `$MODEL_HOST`, and `$MODEL_NODES` lists all its nodes.
    #[serde(default, deserialize_with = "null_as_default")]
    #[schema(value_type = Option<Vec<ComponentRequest>>, max_items = 23)]
    pub services: Vec<ComponentRequest>,
    /// How the command becomes processes: a kind such as `torchrun`, or an object with the kind and its settings. Each process
    /// runs the command. Default: `tasks_per_node` processes on each node.
    #[schema(value_type = Option<LauncherBody>)]
    pub launcher: Option<Value>,
    /// Lines for bash that run before the program of each task, in its container if it has one, such as `module load cuda`. The
    /// job ends if one of them fails.
    #[serde(default, deserialize_with = "null_as_default")]
    #[schema(value_type = Option<Vec<String>>, max_items = 100)]
    pub setup: Vec<String>,
    /// Files that are staged with the job, at most 256 KiB together. `$TAO_JOB_FILES` is their directory; the keys are paths below
    /// it.
    #[serde(default, deserialize_with = "null_as_default")]
    #[schema(value_type = Option<BTreeMap<String, FileRequest>>)]
    pub files: BTreeMap<String, FileRequest>,
    /// The directory that the program starts in. It must exist. Default: that of the container's image, or the home directory.
    pub workdir: Option<String>,
    /// What is read of each task when it has ended, and returned by `GET /jobs/{id}/results`.
    #[serde(default, deserialize_with = "null_as_default")]
    #[schema(value_type = Option<Vec<ResultRequest>>, max_items = 50)]
    pub results: Vec<ResultRequest>,
    /// A file in which the program writes how far it has come. `GET /jobs/{id}/status` has it in `progress`.
    pub progress: Option<ProgressRequest>,
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
    /// When the job goes on after an attempt that did not succeed, and for how long. Default: after failures of the infrastructure.
    pub restart: Option<RestartRequest>,
    /// Whether Slurm may requeue the job after a node failure or preemption, under the same Slurm id.
    /// Default: the cluster's setting, by default true.
    pub use_requeue: Option<bool>,
    /// A running job that writes no status line, log byte or result file for this many minutes is canceled and ends in
    /// `Error`. Default: no limit.
    #[schema(minimum = 1, maximum = 525_600)]
    pub timeout_minutes: Option<u32>,
    pub idle_policy: Option<IdleRequest>,
    #[serde(default, deserialize_with = "null_as_default")]
    #[schema(value_type = Option<BackendDetails>)]
    pub backend_details: BackendDetails,
    /// The receiver of the job's status changes. Default: the webhook of the caller's token, if it has one. Only the answers of
    /// `/jobs/{id}/webhook` show it.
    #[schema(write_only)]
    pub webhook: Option<WebhookRequest>,
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
    /// The Slurm account to charge. Default: the cluster's setting, then the user's default account.
    pub account: Option<String>,
    /// The quality of service. Default: the cluster's setting, then Slurm's default.
    pub qos: Option<String>,
    /// The reservation to use; several are separated by commas.
    pub reservation: Option<String>,
    /// How much to lower the job's priority in Slurm. Only Slurm's operators may raise it by a negative number.
    pub nice: Option<i32>,
    /// The earliest start: `2026-12-01T08:00:00Z`, `now+2hours` after the job is created, or `2026-12-01T08:00:00` in the
    /// cluster's time zone.
    pub begin: Option<String>,
    /// The latest end, written as `begin`. Slurm removes a job that cannot end by then.
    pub deadline: Option<String>,
    /// Slurm's comment of the job: one line. The `traceparent` of the request is appended, or added to a JSON object.
    pub comment: Option<String>,
    /// Other long options of sbatch without their dashes, such as `{"hint": "nomultithread", "contiguous": true}`. A text or a
    /// number is a value, `true` is an option without a value, and `false` or null leaves out a line that the service would
    /// write, such as `{"mem": null}`. Options that the service sets from other fields are refused. Default: the cluster's
    /// setting; each option overrides its own.
    #[serde(default, deserialize_with = "null_as_default")]
    #[schema(value_type = Option<Object>)]
    pub sbatch_options: BTreeMap<String, Value>,
}

/// The backend of this service.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum BackendType {
    #[default]
    Slurm,
}
