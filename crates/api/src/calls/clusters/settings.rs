//! A cluster's settings as the API receives and returns them.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use utoipa::ToSchema;

/// A cluster for the database: how to reach it, and the defaults of its jobs. Each key has the meaning and the default of
/// the same key in a `[[clusters]]` table of the configuration file.
// Required keys are checked later: serde would stop at the first missing one.
#[derive(Debug, Clone, Default, Deserialize, Serialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct ClusterSettings {
    /// The cluster's name: 1 to 64 of `a-z`, `0-9`, `_`, `-` and `.`. It cannot change. Required when the cluster is added;
    /// later the path names it.
    #[schema(max_length = 64, examples("dgx"))]
    pub(crate) name: Option<String>,
    /// The login name on the cluster.
    #[schema(required = true, nullable = false, value_type = String, examples("svc-tao"))]
    pub(crate) user: Option<String>,
    /// The login hosts with optional ports, the preferred one first.
    #[schema(required = true, nullable = false, value_type = Vec<String>, min_items = 1, max_items = 16, examples("login1.example.org", "login2.example.org:2222"))]
    pub(crate) hosts: Option<Vec<String>>,
    /// The file name of a private key in the server's key directory (`ssh.key_directory`); neither a key nor a path.
    #[schema(required = true, nullable = false, value_type = String, min_length = 1, max_length = 100, examples("dgx"))]
    pub(crate) ssh_key: Option<String>,
    /// The login hosts' public keys as `ssh-keyscan` prints them, at least one for each host. Other host keys are refused.
    #[schema(required = true, nullable = false, value_type = Vec<String>, min_items = 1, max_items = 64, examples("login1.example.org ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIG5vdCBhIGtleSBvZiBhbnkgaG9zdCBvbiB0aGlzIGVhcnRo"))]
    pub(crate) host_keys: Option<Vec<String>>,
    /// The default Slurm account.
    pub(crate) account: Option<String>,
    /// The default partitions.
    #[schema(max_items = 64)]
    pub(crate) partitions: Option<Vec<String>>,
    /// The directory for specifications, scripts, logs and results.
    #[schema(examples("/lustre/fsw/portfolios/edgeai/users/svc-tao"))]
    pub(crate) base_results_dir: Option<String>,
    /// The default container mounts: `/source`, `/source:/inside` or `/source:/inside:ro`.
    #[schema(max_items = 64)]
    pub(crate) container_mounts: Option<Vec<String>>,
    /// Directories that only the nodes have: what a job needs below them is not checked before its submission.
    #[schema(max_items = 64)]
    pub(crate) node_local_paths: Option<Vec<String>>,
    /// The default number of nodes.
    pub(crate) num_nodes: Option<u32>,
    /// The default of a job's `num_gpus`.
    pub(crate) num_gpus: Option<u32>,
    /// The number of GPUs in a node.
    pub(crate) max_num_gpus_per_node: Option<u32>,
    /// Tasks of each node.
    pub(crate) tasks_per_node: Option<u32>,
    /// CPUs of each task.
    pub(crate) cpus_per_task: Option<u32>,
    /// The default Slurm time limit, in hours.
    pub(crate) time_hours: Option<f64>,
    /// The default soft time limit of the job, in hours.
    pub(crate) timeout_hours: Option<f64>,
    /// The longest allowed time limit, in hours, while the cluster has not reported its own limits.
    pub(crate) max_time_hours: Option<f64>,
    /// The option of sbatch that asks for GPUs: `gres` or `gpus-per-node`.
    pub(crate) gpu_request: Option<String>,
    /// The plugin for jobs with MPI, as `srun --mpi=list` names it.
    pub(crate) mpi_plugin: Option<String>,
    /// The default type of GPUs.
    pub(crate) gpu_type: Option<String>,
    /// The default memory of each node, such as `64G`. Give at most one of the three.
    pub(crate) memory: Option<String>,
    /// The default memory of each CPU.
    pub(crate) memory_per_cpu: Option<String>,
    /// The default memory of each GPU.
    pub(crate) memory_per_gpu: Option<String>,
    /// The default generic resources of each node, such as `nvme:1`; no GPUs, MPS or shards.
    #[schema(max_items = 20)]
    pub(crate) gres: Option<Vec<String>>,
    /// The default features of nodes.
    pub(crate) constraint: Option<String>,
    /// Whether nodes are exclusive.
    pub(crate) exclusive: Option<bool>,
    /// The nodes that every job needs.
    pub(crate) nodelist: Option<String>,
    /// The nodes that no job gets.
    pub(crate) exclude: Option<String>,
    /// The default licenses.
    pub(crate) licenses: Option<String>,
    /// The default number of leaf switches, such as `1` or `1@00:30:00`.
    pub(crate) switches: Option<String>,
    /// The default quality of service.
    pub(crate) qos: Option<String>,
    /// The default reservations.
    pub(crate) reservation: Option<String>,
    /// How much the priority of jobs is lowered.
    pub(crate) nice: Option<i32>,
    /// The default comment.
    pub(crate) comment: Option<String>,
    /// Other options of sbatch, as in a job's `backend_details`; `false` leaves out a line that the service would write.
    #[schema(value_type = Option<Object>)]
    pub(crate) sbatch_options: Option<Map<String, Value>>,
    /// What makes the containers of jobs: `pyxis` or `apptainer`.
    pub(crate) container_runtime: Option<String>,
    /// Whether registry images are converted to SquashFS files that jobs share.
    pub(crate) use_sqsh: Option<bool>,
    /// Whether a failed conversion fails the job.
    pub(crate) require_sqsh: Option<bool>,
    /// Whether an image with the tag `latest` is converted again for each job.
    pub(crate) force_reconvert_latest: Option<bool>,
    /// The directory for converted images.
    pub(crate) sqsh_cache_dir: Option<String>,
    /// The partition for conversions.
    pub(crate) conversion_partition: Option<String>,
    /// The time limit of a conversion, in minutes.
    pub(crate) conversion_minutes: Option<u32>,
    /// The memory of a conversion, in gigabytes.
    pub(crate) conversion_memory_gb: Option<u32>,
    /// The directory in which Enroot unpacks images during a conversion.
    pub(crate) enroot_temp_dir: Option<String>,
    /// How often a job is retried after an infrastructure failure.
    pub(crate) max_retries: Option<u32>,
    /// Whether Slurm may requeue a job.
    pub(crate) use_requeue: Option<bool>,
    /// How often a job may requeue itself at its soft time limit.
    pub(crate) max_requeues: Option<u32>,
    /// How long a failed node is excluded from later attempts, in hours.
    pub(crate) node_exclusion_hours: Option<u32>,
    /// Whether Slurm jobs with this service's job names are canceled if the database does not contain their jobs.
    pub(crate) cancel_unknown_jobs: Option<bool>,
    /// The recipient of Slurm's mails about jobs.
    pub(crate) mail_user: Option<String>,
    /// How long before its time limit a job gets a warning signal, in seconds.
    pub(crate) warning_seconds: Option<u32>,
    /// Which login environment a job inherits: `ALL` or `NIL`.
    pub(crate) sbatch_export: Option<String>,
    /// How often jobs measure what they use, in seconds; 0: never.
    pub(crate) usage_seconds: Option<u32>,
    /// What becomes of jobs that do not use their GPUs; null for nothing.
    pub(crate) idle_policy: Option<IdlePolicySettings>,
    /// The number of SSH connections, 1 to 4.
    pub(crate) sessions: Option<u32>,
    /// The time limit of each step of connecting, such as `10s`.
    #[schema(examples("10s"))]
    pub(crate) connect_timeout: Option<String>,
    /// The shortest interval between polls, such as `5s`.
    #[schema(examples("5s"))]
    pub(crate) poll_min: Option<String>,
    /// The longest interval between polls, such as `1m`.
    #[schema(examples("1m"))]
    pub(crate) poll_max: Option<String>,
    /// How many requests the service may make of Slurm; null for no limit.
    pub(crate) rpc_budget: Option<RpcBudgetSettings>,
}

/// What becomes of jobs that do not use their GPUs.
#[derive(Debug, Clone, Deserialize, Serialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct IdlePolicySettings {
    /// The GPUs are idle while the utilization of each of them is below this, in percent. Default: 5.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) below_percent: Option<u32>,
    /// After so many minutes the service acts.
    pub(crate) minutes: u32,
    /// What the service does. Default: `warn`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) action: Option<domain::IdleAction>,
    /// The policy does not apply to jobs with one of these labels: a key, or a key, a colon and a value.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(max_items = 64)]
    pub(crate) exempt_labels: Option<Vec<String>>,
}

/// How many requests a site allows one user to make of Slurm, as `rl_enable` of Slurm limits them.
#[derive(Debug, Clone, Deserialize, Serialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct RpcBudgetSettings {
    /// The most requests at once (`rl_bucket_size`).
    #[schema(examples(40))]
    pub(crate) burst: u32,
    /// The requests per minute after that (`rl_refill_rate`, for a `rl_refill_period` of 60).
    #[schema(examples(4))]
    pub(crate) per_minute: u32,
}

impl ClusterSettings {
    /// The settings without the name, which is stored beside them, and without null keys.
    pub(crate) fn document(&self) -> Value {
        let mut settings = serde_json::to_value(self).unwrap_or_default();
        if let Value::Object(keys) = &mut settings {
            keys.retain(|key, value| key != "name" && !value.is_null());
        }
        settings
    }

    /// The settings as they were sent, with the name.
    pub(crate) fn shown(name: &str, settings: &Value) -> Value {
        let mut shown = serde_json::Map::from_iter([("name".to_owned(), Value::from(name))]);
        if let Value::Object(settings) = settings {
            shown.extend(settings.clone());
        }
        Value::Object(shown)
    }
}
