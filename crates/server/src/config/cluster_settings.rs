//! One `[[clusters]]` table as it is written, and the environment variables that say the same.

use std::{path::PathBuf, str::FromStr, time::Duration};

use serde::{Deserialize, Serialize};

use super::{environment::Environment, problems::Problems};

/// What is said about a cluster. Nothing is required here: the environment may say the rest.
#[derive(Debug, Clone, Default, PartialEq, Deserialize, Serialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct ClusterSettings {
    pub(crate) name: Option<String>,
    pub(crate) user: Option<String>,
    pub(crate) hosts: Option<Vec<String>>,
    pub(crate) key_path: Option<PathBuf>,
    pub(crate) agent_socket: Option<PathBuf>,
    pub(crate) known_hosts: Option<Vec<PathBuf>>,
    pub(crate) host_keys: Option<Vec<String>>,
    pub(crate) account: Option<String>,
    pub(crate) partitions: Option<Vec<String>>,
    pub(crate) base_results_dir: Option<String>,
    pub(crate) container_mounts: Option<Vec<String>>,
    pub(crate) num_nodes: Option<u32>,
    pub(crate) num_gpus: Option<u32>,
    pub(crate) max_num_gpus_per_node: Option<u32>,
    pub(crate) cpus_per_task: Option<u32>,
    pub(crate) time_hours: Option<f64>,
    pub(crate) timeout_hours: Option<f64>,
    pub(crate) max_time_hours: Option<f64>,
    pub(crate) use_sqsh: Option<bool>,
    pub(crate) require_sqsh: Option<bool>,
    pub(crate) force_reconvert_latest: Option<bool>,
    pub(crate) sqsh_cache_dir: Option<String>,
    pub(crate) conversion_partition: Option<String>,
    pub(crate) conversion_minutes: Option<u32>,
    pub(crate) conversion_memory_gb: Option<u32>,
    pub(crate) enroot_temp_dir: Option<String>,
    pub(crate) max_retries: Option<u32>,
    pub(crate) use_requeue: Option<bool>,
    pub(crate) max_requeues: Option<u32>,
    pub(crate) node_exclusion_hours: Option<u32>,
    pub(crate) cancel_unknown_jobs: Option<bool>,
    pub(crate) mail_user: Option<String>,
    pub(crate) warning_seconds: Option<u32>,
    pub(crate) sbatch_export: Option<String>,
    pub(crate) sessions: Option<usize>,
    #[serde(with = "humantime_serde")]
    pub(crate) connect_timeout: Option<Duration>,
    #[serde(with = "humantime_serde")]
    pub(crate) poll_min: Option<Duration>,
    #[serde(with = "humantime_serde")]
    pub(crate) poll_max: Option<Duration>,
}

/// Each key's variables, the preferred one first. Messages name them beside the key.
pub(crate) const VARIABLES: [(&str, &[&str]); 25] = [
    ("name", &["SLURM_CLUSTER_NAME"]),
    ("user", &["SLURM_USER", "SSH_USER"]),
    ("hosts", &["SLURM_HOSTNAME", "SSH_HOST"]),
    ("key_path", &["SSH_KEY_PATH"]),
    ("agent_socket", &["SSH_AUTH_SOCK"]),
    ("known_hosts", &["SSH_KNOWN_HOSTS"]),
    ("account", &["SLURM_ACCOUNT"]),
    ("partitions", &["SLURM_PARTITION"]),
    ("base_results_dir", &["SLURM_BASE_RESULTS_DIR"]),
    ("container_mounts", &["SLURM_CONTAINER_MOUNTS"]),
    ("num_gpus", &["SLURM_NUM_GPUS"]),
    ("max_num_gpus_per_node", &["SLURM_MAX_GPUS_PER_NODE"]),
    ("cpus_per_task", &["SLURM_CPUS_PER_TASK"]),
    ("time_hours", &["SLURM_TIME_HOURS"]),
    ("timeout_hours", &["SLURM_TIMEOUT_HOURS"]),
    ("use_sqsh", &["SLURM_USE_SQSH"]),
    ("require_sqsh", &["SLURM_REQUIRE_SQSH"]),
    ("force_reconvert_latest", &["SLURM_FORCE_RECONVERT_LATEST"]),
    ("sqsh_cache_dir", &["SLURM_SQSH_CACHE_DIR"]),
    ("conversion_partition", &["SLURM_CONVERSION_PARTITION"]),
    ("conversion_minutes", &["SLURM_CONVERSION_TIMEOUT_MINUTES"]),
    ("conversion_memory_gb", &["SLURM_CONVERSION_MEMORY_GB"]),
    ("enroot_temp_dir", &["SLURM_ENROOT_TEMP_PATH"]),
    ("use_requeue", &["SLURM_USE_REQUEUE"]),
    ("mail_user", &["SLURM_MAIL_USER"]),
];

pub(crate) fn variables_of(key: &str) -> &'static [&'static str] {
    VARIABLES.iter().find(|(known, _)| *known == key).map_or(&[], |(_, names)| names)
}

impl ClusterSettings {
    /// What the environment says about one cluster.
    pub(crate) fn from_environment(environment: &Environment, problems: &mut Problems) -> Self {
        let text = |key: &str| environment.first(variables_of(key)).map(|(_, value)| value.to_owned());
        let list = |key: &str| {
            let parts =
                |value: String| value.split(',').map(|part| part.trim().to_owned()).collect::<Vec<_>>();
            text(key)
                .map(parts)
                .map(|parts| parts.into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>())
        };
        let paths = |key: &str| list(key).map(|parts| parts.into_iter().map(PathBuf::from).collect());
        Self {
            name: text("name"),
            user: text("user"),
            hosts: list("hosts"),
            key_path: text("key_path").map(PathBuf::from),
            agent_socket: text("agent_socket").map(PathBuf::from),
            known_hosts: paths("known_hosts"),
            account: text("account"),
            partitions: list("partitions"),
            base_results_dir: text("base_results_dir"),
            container_mounts: list("container_mounts"),
            num_gpus: number(environment, "num_gpus", "a whole number, such as 4", problems),
            max_num_gpus_per_node: number(
                environment,
                "max_num_gpus_per_node",
                "a whole number, such as 8",
                problems,
            ),
            cpus_per_task: number(environment, "cpus_per_task", "a whole number, such as 16", problems),
            time_hours: number(environment, "time_hours", "a number of hours, such as 4 or 3.8", problems),
            timeout_hours: number(
                environment,
                "timeout_hours",
                "a number of hours, such as 4 or 3.8",
                problems,
            ),
            use_sqsh: flag(environment, "use_sqsh", problems),
            require_sqsh: flag(environment, "require_sqsh", problems),
            force_reconvert_latest: flag(environment, "force_reconvert_latest", problems),
            sqsh_cache_dir: text("sqsh_cache_dir"),
            conversion_partition: text("conversion_partition"),
            conversion_minutes: number(
                environment,
                "conversion_minutes",
                "a whole number, such as 30",
                problems,
            ),
            conversion_memory_gb: number(
                environment,
                "conversion_memory_gb",
                "a whole number, such as 30",
                problems,
            ),
            enroot_temp_dir: text("enroot_temp_dir"),
            use_requeue: flag(environment, "use_requeue", problems),
            mail_user: text("mail_user"),
            ..Self::default()
        }
    }

    /// These settings, and `lower`'s where these say nothing.
    pub(crate) fn over(self, lower: Self) -> Self {
        Self {
            name: self.name.or(lower.name),
            user: self.user.or(lower.user),
            hosts: self.hosts.or(lower.hosts),
            key_path: self.key_path.or(lower.key_path),
            agent_socket: self.agent_socket.or(lower.agent_socket),
            known_hosts: self.known_hosts.or(lower.known_hosts),
            host_keys: self.host_keys.or(lower.host_keys),
            account: self.account.or(lower.account),
            partitions: self.partitions.or(lower.partitions),
            base_results_dir: self.base_results_dir.or(lower.base_results_dir),
            container_mounts: self.container_mounts.or(lower.container_mounts),
            num_nodes: self.num_nodes.or(lower.num_nodes),
            num_gpus: self.num_gpus.or(lower.num_gpus),
            max_num_gpus_per_node: self.max_num_gpus_per_node.or(lower.max_num_gpus_per_node),
            cpus_per_task: self.cpus_per_task.or(lower.cpus_per_task),
            time_hours: self.time_hours.or(lower.time_hours),
            timeout_hours: self.timeout_hours.or(lower.timeout_hours),
            max_time_hours: self.max_time_hours.or(lower.max_time_hours),
            use_sqsh: self.use_sqsh.or(lower.use_sqsh),
            require_sqsh: self.require_sqsh.or(lower.require_sqsh),
            force_reconvert_latest: self.force_reconvert_latest.or(lower.force_reconvert_latest),
            sqsh_cache_dir: self.sqsh_cache_dir.or(lower.sqsh_cache_dir),
            conversion_partition: self.conversion_partition.or(lower.conversion_partition),
            conversion_minutes: self.conversion_minutes.or(lower.conversion_minutes),
            conversion_memory_gb: self.conversion_memory_gb.or(lower.conversion_memory_gb),
            enroot_temp_dir: self.enroot_temp_dir.or(lower.enroot_temp_dir),
            max_retries: self.max_retries.or(lower.max_retries),
            use_requeue: self.use_requeue.or(lower.use_requeue),
            max_requeues: self.max_requeues.or(lower.max_requeues),
            node_exclusion_hours: self.node_exclusion_hours.or(lower.node_exclusion_hours),
            cancel_unknown_jobs: self.cancel_unknown_jobs.or(lower.cancel_unknown_jobs),
            mail_user: self.mail_user.or(lower.mail_user),
            warning_seconds: self.warning_seconds.or(lower.warning_seconds),
            sbatch_export: self.sbatch_export.or(lower.sbatch_export),
            sessions: self.sessions.or(lower.sessions),
            connect_timeout: self.connect_timeout.or(lower.connect_timeout),
            poll_min: self.poll_min.or(lower.poll_min),
            poll_max: self.poll_max.or(lower.poll_max),
        }
    }
}

fn number<T: FromStr>(
    environment: &Environment,
    key: &str,
    expected: &str,
    problems: &mut Problems,
) -> Option<T> {
    let (name, value) = environment.first(variables_of(key))?;
    let parsed = value.trim().parse().ok();
    if parsed.is_none() {
        problems.add(name, format_args!("{value:?} will not do; write {expected}"));
    }
    parsed
}

/// What TAO takes for yes, and its opposites; anything else is a mistake to be told of.
fn flag(environment: &Environment, key: &str, problems: &mut Problems) -> Option<bool> {
    let (name, value) = environment.first(variables_of(key))?;
    match value.trim().to_ascii_lowercase().as_str() {
        "1" | "true" | "yes" | "y" | "on" => Some(true),
        "0" | "false" | "no" | "n" | "off" => Some(false),
        _ => {
            problems.add(name, format_args!("{value:?} will not do; write true or false"));
            None
        }
    }
}

/// Brings the environment's cluster into the file's list.
///
/// The variables speak of the cluster that `SLURM_CLUSTER_NAME` names; without it, of the file's only cluster.
/// When the file has no such cluster and a login host is given, they define one, behind those of the file.
pub(crate) fn with_environment(
    mut clusters: Vec<ClusterSettings>,
    environment: &Environment,
    problems: &mut Problems,
) -> Vec<ClusterSettings> {
    let mut said = ClusterSettings::from_environment(environment, problems);
    // The agent belongs to the account that runs the service, so it serves every cluster that names none.
    let agent = said.agent_socket.take();
    let meant = match (&said.name, clusters.as_slice()) {
        (None, [_]) => Some(0),
        (name, _) => {
            let name = name.as_deref().unwrap_or("default");
            clusters.iter().position(|cluster| cluster.name.as_deref() == Some(name))
        }
    };
    match meant {
        Some(index) => clusters[index] = said.over(std::mem::take(&mut clusters[index])),
        None if said.hosts.is_some() => {
            let unnamed = ClusterSettings { name: Some("default".to_owned()), ..ClusterSettings::default() };
            clusters.push(said.over(unnamed));
        }
        None => {}
    }
    for cluster in &mut clusters {
        cluster.agent_socket = cluster.agent_socket.take().or_else(|| agent.clone());
    }
    clusters
}
