//! What a job is, once its request is believed.

mod cloud;
mod environment;
mod faults;
mod from_request;
mod inputs;
mod labels;
mod work;

pub(crate) use environment::MAX_ENV_VALUE;

use std::{
    collections::{BTreeMap, BTreeSet},
    num::NonZeroU32,
};

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use slurm::{EnvKey, PartitionList, RemotePath, TraceParent};

use crate::{
    cluster::{
        mount::Mount,
        policy::{ImagePolicy, MAX_RETRIES},
        resources::Resources,
    },
    image::ImageRef,
    request::text::{Label, Word},
};

/// A validated job. Holds no secret.
///
/// Fields that a job of an earlier release lacks have the value that such a job was run with.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct JobSpec {
    pub name: Option<Label>,
    pub labels: BTreeMap<Label, String>,
    pub work: Work,
    pub image: Option<ImageRef>,
    #[serde(default)]
    pub image_policy: ImagePolicy,
    pub env: BTreeMap<EnvKey, String>,
    /// The names of the secret variables; their values are sealed apart.
    pub secret_env: BTreeSet<EnvKey>,
    /// What of TAO's workspace details is no secret: see [`Secrets::cloud_metadata`](crate::Secrets) for the rest.
    #[serde(default)]
    pub cloud_plain: Map<String, Value>,
    /// The top-level names of the workspace details that are sealed apart.
    #[serde(default)]
    pub cloud_secret_keys: BTreeSet<String>,
    /// The files and directories that the caller listed.
    #[serde(default)]
    pub inputs: Vec<RemotePath>,
    /// Everything that must exist before the job is staged: the inputs, and the data sets of its specification.
    #[serde(default)]
    pub required_paths: Vec<RemotePath>,
    pub resources: Resources,
    /// The port of the first node at which the others of a job meet it.
    #[serde(default = "default_master_port")]
    pub master_port: u16,
    /// Attempts after the first, for failures of the infrastructure.
    #[serde(default = "default_max_retries")]
    pub max_retries: u32,
    /// Slurm itself may start the job again, under the same id.
    #[serde(default = "default_use_requeue")]
    pub use_requeue: bool,
    /// A running job that writes nothing for so many minutes is ended; without it, none is.
    #[serde(default)]
    pub timeout_minutes: Option<NonZeroU32>,
    pub mounts: Vec<Mount>,
    pub partitions: Option<PartitionList>,
    /// The trace of the request that made the job.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trace: Option<TraceParent>,
}

/// The port that TAO documents, and torch's own default.
pub const DEFAULT_MASTER_PORT: u16 = 29500;

fn default_master_port() -> u16 {
    DEFAULT_MASTER_PORT
}

fn default_max_retries() -> u32 {
    MAX_RETRIES
}

fn default_use_requeue() -> bool {
    true
}

/// What is run.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "kind")]
pub enum Work {
    /// The TAO container's own entry point.
    Tao { network_arch: Word, action: Word, specs: Value },
    /// A shell text, run by `bash -euo pipefail`.
    Command { text: String },
}

#[cfg(test)]
mod tests;
