//! The settings of a cluster as they are sent and shown.

use serde::{Deserialize, Serialize};
use serde_json::Value;
use utoipa::ToSchema;

/// A cluster that is kept in the database: how to reach it, and what its jobs get that do not say. Each key means what the
/// key of that name means in a `[[clusters]]` table of the configuration file, and has the same default.
// What has to be there is not asked for here: serde would stop at the first that is missing.
#[derive(Debug, Clone, Default, Deserialize, Serialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct ClusterSettings {
    /// The name that jobs and answers use: 1 to 64 of `a-z`, `0-9`, `_`, `-` and `.`. It never changes.
    /// Required when the cluster is added; later it is that of the path.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(max_length = 64, examples("dgx"))]
    pub(crate) name: Option<String>,
    /// The login name on the cluster.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(required = true, nullable = false, value_type = String, examples("svc-tao"))]
    pub(crate) user: Option<String>,
    /// The login hosts, the preferred one first, each with an optional port.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(required = true, nullable = false, value_type = Vec<String>, min_items = 1, max_items = 16, examples("login1.example.org", "login2.example.org:2222"))]
    pub(crate) hosts: Option<Vec<String>>,
    /// The name of a private key in the server's key directory (`ssh.key_directory`): a file name, neither a key nor a path.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(required = true, nullable = false, value_type = String, min_length = 1, max_length = 100, examples("dgx"))]
    pub(crate) ssh_key: Option<String>,
    /// The login hosts' keys, as `ssh-keyscan` prints them, at least one for each host. Others are refused.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(required = true, nullable = false, value_type = Vec<String>, min_items = 1, max_items = 64, examples("login1.example.org ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIG5vdCBhIGtleSBvZiBhbnkgaG9zdCBvbiB0aGlzIGVhcnRo"))]
    pub(crate) host_keys: Option<Vec<String>>,
    /// The Slurm account to charge.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) account: Option<String>,
    /// Where jobs may run that do not say.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(max_items = 64)]
    pub(crate) partitions: Option<Vec<String>>,
    /// Where specs, scripts, logs and results lie.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(examples("/lustre/fsw/portfolios/edgeai/users/svc-tao"))]
    pub(crate) base_results_dir: Option<String>,
    /// What containers see: `/source`, `/source:/inside` or `/source:/inside:ro`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(max_items = 64)]
    pub(crate) container_mounts: Option<Vec<String>>,
    /// Nodes of a job.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) num_nodes: Option<u32>,
    /// GPUs of a job: per node when below `max_num_gpus_per_node`, else in all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) num_gpus: Option<u32>,
    /// How many GPUs a node has.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) max_num_gpus_per_node: Option<u32>,
    /// Processors for each node's task.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) cpus_per_task: Option<u32>,
    /// Slurm's limit of a job, in hours.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) time_hours: Option<f64>,
    /// The job's own limit, in hours.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) timeout_hours: Option<f64>,
    /// The longest limit that a job may ask for, in hours, where the cluster has not said what it allows.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) max_time_hours: Option<f64>,
    /// Whether images of registries are converted once for all jobs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) use_sqsh: Option<bool>,
    /// Whether a conversion that fails fails the job.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) require_sqsh: Option<bool>,
    /// Whether an image tagged `latest` is converted anew for each job.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) force_reconvert_latest: Option<bool>,
    /// Where converted images lie.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) sqsh_cache_dir: Option<String>,
    /// Where conversions run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) conversion_partition: Option<String>,
    /// The longest a conversion may take, in minutes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) conversion_minutes: Option<u32>,
    /// Its memory, in gigabytes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) conversion_memory_gb: Option<u32>,
    /// Where Enroot unpacks while it converts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) enroot_temp_dir: Option<String>,
    /// How often a job goes again after a failure of the infrastructure.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) max_retries: Option<u32>,
    /// Whether Slurm itself may start a job again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) use_requeue: Option<bool>,
    /// How often a job that came to its own time limit may go on by requeueing itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) max_requeues: Option<u32>,
    /// For how long a node that failed is kept out of later attempts, in hours.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) node_exclusion_hours: Option<u32>,
    /// Whether Slurm jobs with names of ours that the database has never heard of are canceled.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) cancel_unknown_jobs: Option<bool>,
    /// Who gets Slurm's mails about every job.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) mail_user: Option<String>,
    /// How long before its time limit a job is warned by a signal, in seconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) warning_seconds: Option<u32>,
    /// What of the login environment a job inherits: `ALL` or `NIL`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) sbatch_export: Option<String>,
    /// Connections to the login hosts, 1 to 4.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) sessions: Option<u32>,
    /// The bound of each step of connecting, such as `10s`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(examples("10s"))]
    pub(crate) connect_timeout: Option<String>,
    /// The shortest time between two polls, such as `5s`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(examples("5s"))]
    pub(crate) poll_min: Option<String>,
    /// The longest time between two polls, such as `1m`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(examples("1m"))]
    pub(crate) poll_max: Option<String>,
}

impl ClusterSettings {
    /// The settings without the name, which is kept beside them; keys that say nothing are left out.
    pub(crate) fn document(&self) -> Value {
        let nameless = Self { name: None, ..self.clone() };
        serde_json::to_value(nameless).unwrap_or_default()
    }

    /// As they were sent, with the name.
    pub(crate) fn shown(name: &str, settings: &Value) -> Value {
        let mut shown = serde_json::Map::from_iter([("name".to_owned(), Value::from(name))]);
        if let Value::Object(settings) = settings {
            shown.extend(settings.clone());
        }
        Value::Object(shown)
    }
}
