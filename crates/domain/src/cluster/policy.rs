//! A cluster's policies: images, retries and batch scripts.

use serde::{Deserialize, Serialize};
use slurm::{GpuRequest, InvalidName, MailAddress, MpiPlugin, Partition, RemotePath, SubmitOptions};
use strum::{Display, EnumString};
use utoipa::ToSchema;

use super::idle::ClusterIdlePolicy;

/// What makes the container of a job from its image.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, Display, EnumString, ToSchema,
)]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
pub enum ContainerRuntime {
    /// The Pyxis plugin of srun, with Enroot.
    #[default]
    Pyxis,
    /// Apptainer, which must be installed on the nodes. It pulls images itself.
    Apptainer,
}

/// How an image becomes a container, and whether it is converted to a SquashFS file before the job starts. Each job has its own
/// policy.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct ImagePolicy {
    pub runtime: ContainerRuntime,
    /// Convert a registry image once and run the file. Otherwise Pyxis pulls the image on every node.
    pub use_sqsh: bool,
    /// Fail the job if the conversion fails. Otherwise the job runs the registry image.
    pub require_sqsh: bool,
    /// Convert an image with the tag `latest`, or without one, again even if its file exists.
    pub force_reconvert_latest: bool,
}

impl Default for ImagePolicy {
    fn default() -> Self {
        Self {
            runtime: ContainerRuntime::Pyxis,
            use_sqsh: true,
            require_sqsh: false,
            force_reconvert_latest: false,
        }
    }
}

/// How a cluster converts images.
#[derive(Debug, Clone)]
pub struct ImageSettings {
    /// The default policy of a job.
    pub policy: ImagePolicy,
    /// The directory of converted images, shared by all jobs of the cluster.
    pub cache_dir: RemotePath,
    /// The partition for conversions. They need no GPU.
    pub conversion_partition: Partition,
    pub conversion_minutes: u32,
    pub conversion_memory_gb: u32,
    /// Enroot's working directory for conversions. Default: a directory in the cache.
    pub temp_dir: Option<RemotePath>,
}

impl ImageSettings {
    /// TAO's packaged values: partition `cpu`, 30 minutes, 32 GB, and the cache in the base directory.
    pub fn packaged(base_dir: &RemotePath) -> Result<Self, InvalidName> {
        Ok(Self {
            policy: ImagePolicy::default(),
            cache_dir: base_dir.clone(),
            conversion_partition: "cpu".parse()?,
            conversion_minutes: 30,
            conversion_memory_gb: 32,
            temp_dir: None,
        })
    }
}

/// How often a job may be retried or requeued.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RetrySettings {
    /// The default number of retries after infrastructure failures.
    pub max_retries: u32,
    /// The default of whether Slurm may requeue the job under the same id.
    pub use_requeue: bool,
    /// How often a job that reaches its own time limit may requeue itself.
    pub max_requeues: u32,
    /// How long later attempts exclude a node that failed.
    pub node_exclusion_hours: u32,
    /// Cancel Slurm jobs that have our names and are not in the database. Enable this only if no other service uses the
    /// same user.
    pub cancel_unknown_jobs: bool,
}

/// TAO's retry budget. TAO requeues without limit; ten rounds of four hours are almost two days.
pub(crate) const MAX_RETRIES: u32 = 10;

impl Default for RetrySettings {
    fn default() -> Self {
        Self {
            max_retries: MAX_RETRIES,
            use_requeue: true,
            max_requeues: 10,
            node_exclusion_hours: 24,
            cancel_unknown_jobs: false,
        }
    }
}

/// Settings of all batch scripts of a cluster.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BatchSettings {
    /// The recipient of Slurm's mails about jobs. Default: no mails.
    pub mail_user: Option<MailAddress>,
    /// How long before its time limit a job gets a warning signal, in seconds; 0 disables it.
    pub warning_seconds: u32,
    pub sbatch_export: SbatchExport,
    /// Every so many seconds a job measures what it uses; 0: never.
    pub usage_seconds: u32,
    /// What becomes of jobs that do not use their GPUs.
    pub idle: Option<ClusterIdlePolicy>,
}

impl Default for BatchSettings {
    fn default() -> Self {
        Self {
            mail_user: None,
            warning_seconds: 120,
            sbatch_export: SbatchExport::All,
            usage_seconds: 10,
            idle: None,
        }
    }
}

/// What the jobs of a cluster ask Slurm for, unless they say otherwise.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SubmitSettings {
    /// The option that asks for GPUs.
    pub gpu_request: GpuRequest,
    /// Whether nodes are exclusive. Default: if the job has all GPUs of its nodes.
    pub exclusive: Option<bool>,
    /// The plugin that connects the processes of MPI.
    pub mpi_plugin: Option<MpiPlugin>,
    /// The defaults of a job's options. The account is the cluster's own field.
    pub options: SubmitOptions,
}

/// Which variables of the login shell a job inherits (`sbatch --export`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Display, EnumString)]
#[strum(serialize_all = "UPPERCASE")]
pub enum SbatchExport {
    /// All of them, as in TAO.
    All,
    /// Only Slurm's own variables.
    Nil,
}
