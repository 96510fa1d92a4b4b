//! How a cluster's operator wants jobs to be treated, and what of it a job may choose for itself.

use serde::{Deserialize, Serialize};
use slurm::{InvalidName, MailAddress, Partition, RemotePath};
use strum::{Display, EnumString};

/// Whether and how an image is turned into a SquashFS file before the job starts. Each job has its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct ImagePolicy {
    /// Convert an image of a registry once and run the file; otherwise Pyxis fetches it on every node.
    pub use_sqsh: bool,
    /// A conversion that failed fails the job, which otherwise runs the image itself.
    pub require_sqsh: bool,
    /// An image tagged `latest`, or not at all, is converted anew although a file of it is there.
    pub force_reconvert_latest: bool,
}

impl Default for ImagePolicy {
    fn default() -> Self {
        Self { use_sqsh: true, require_sqsh: false, force_reconvert_latest: false }
    }
}

/// How the images of a cluster are converted.
#[derive(Debug, Clone)]
pub struct ImageSettings {
    /// What a job that says nothing gets.
    pub policy: ImagePolicy,
    /// Where converted images lie; all jobs of the cluster share them.
    pub cache_dir: RemotePath,
    /// Where conversions run: no GPU is needed for one.
    pub conversion_partition: Partition,
    pub conversion_minutes: u32,
    pub conversion_memory_gb: u32,
    /// Where Enroot unpacks while it converts; a directory in the cache when absent.
    pub temp_dir: Option<RemotePath>,
}

impl ImageSettings {
    /// TAO's packaged values: converted in the partition `cpu`, in at most 30 minutes with 32 GB, beside the jobs.
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

/// How often a job may go again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RetrySettings {
    /// Attempts after the first, for failures of the infrastructure. What a job that says nothing gets.
    pub max_retries: u32,
    /// Slurm itself may start the job again, under the same id. What a job that says nothing gets.
    pub use_requeue: bool,
    /// How often a job that reached its own time limit may requeue itself.
    pub max_requeues: u32,
    /// How long a node that failed is kept out of later attempts.
    pub node_exclusion_hours: u32,
    /// Whether jobs on the cluster that bear our names and that the database does not know are canceled: only where no
    /// other service works for the same user.
    pub cancel_unknown_jobs: bool,
}

/// TAO's budget of ten retries. TAO requeues without end; ten rounds of four hours are most of two days.
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

/// What the batch scripts of a cluster share beyond what each job asks for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BatchSettings {
    /// Who gets Slurm's mails about jobs; nobody when absent.
    pub mail_user: Option<MailAddress>,
    /// How long before its time limit a job is warned by a signal, in seconds; 0 for no warning.
    pub warning_seconds: u32,
    pub sbatch_export: SbatchExport,
}

impl Default for BatchSettings {
    fn default() -> Self {
        Self { mail_user: None, warning_seconds: 120, sbatch_export: SbatchExport::All }
    }
}

/// What of the login shell's environment a job inherits (`sbatch --export`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Display, EnumString)]
#[strum(serialize_all = "UPPERCASE")]
pub enum SbatchExport {
    /// All of it, as TAO does.
    All,
    /// Only Slurm's own variables.
    Nil,
}
