//! One cluster, from what was written to what jobs and connections need.

use std::{path::PathBuf, time::Duration};

use domain::{BatchSettings, Cluster, ImagePolicy, Mount, Resources, ResourcesRequest, RetrySettings};
use slurm::RemotePath;
use ssh::{HostPort, SshConfig};

use super::{
    cluster_policies,
    cluster_settings::ClusterSettings,
    environment::Environment,
    faults::{Faults, OUT_OF_RANGE, REQUIRED},
    settings::Worker,
};

/// A cluster that can be worked with.
#[derive(Debug, Clone)]
pub(crate) struct ClusterConfig {
    pub(crate) cluster: Cluster,
    pub(crate) ssh: SshConfig,
    pub(crate) poll_min: Duration,
    pub(crate) poll_max: Duration,
}

/// Where TAO's Slurm users keep their results.
const USERS_DIR: &str = "/lustre/fsw/portfolios/edgeai/users";
const KEEPALIVE: Duration = Duration::from_secs(20);
const MAX_TIME_HOURS: f64 = 4.0;
const MOST_POLL: Duration = Duration::from_hours(24);
const MOST_CONNECT: Duration = Duration::from_mins(5);

impl ClusterSettings {
    /// Fills in every default, so that what is shown is what is used.
    pub(crate) fn complete(self, environment: &Environment, worker: &Worker) -> Self {
        let base = self.user.as_ref().map(|user| format!("{USERS_DIR}/{user}"));
        let known_hosts = ["~/.ssh/known_hosts", "/etc/ssh/ssh_known_hosts"].map(PathBuf::from).to_vec();
        let max_time_hours = self.max_time_hours.unwrap_or(MAX_TIME_HOURS);
        let time_hours = self.time_hours.unwrap_or(4.0_f64.min(max_time_hours));
        let images = ImagePolicy::default();
        let retries = RetrySettings::default();
        let batch = BatchSettings::default();
        let cache = self.base_results_dir.as_ref().or(base.as_ref());
        let cache = cache.and_then(|text| text.parse().ok()).map(|path| domain::base_of(path).to_string());
        let all = self.over(Self {
            known_hosts: Some(known_hosts),
            host_keys: Some(Vec::new()),
            base_results_dir: base,
            container_mounts: Some(vec!["/lustre".to_owned()]),
            num_nodes: Some(1),
            num_gpus: Some(4),
            max_num_gpus_per_node: Some(8),
            cpus_per_task: Some(16),
            time_hours: Some(time_hours),
            // As for a job: 0.2 hours below the wall time, or half of a very short one.
            timeout_hours: Some((time_hours - 0.2).max(time_hours / 2.0).max(Resources::LEAST_HOURS)),
            max_time_hours: Some(max_time_hours),
            use_sqsh: Some(images.use_sqsh),
            require_sqsh: Some(images.require_sqsh),
            force_reconvert_latest: Some(images.force_reconvert_latest),
            sqsh_cache_dir: cache,
            conversion_partition: Some("cpu".to_owned()),
            conversion_minutes: Some(30),
            conversion_memory_gb: Some(32),
            max_retries: Some(retries.max_retries),
            use_requeue: Some(retries.use_requeue),
            max_requeues: Some(retries.max_requeues),
            node_exclusion_hours: Some(retries.node_exclusion_hours),
            cancel_unknown_jobs: Some(retries.cancel_unknown_jobs),
            warning_seconds: Some(batch.warning_seconds),
            sbatch_export: Some(batch.sbatch_export.to_string()),
            sessions: Some(2),
            connect_timeout: Some(Duration::from_secs(10)),
            poll_min: Some(worker.poll_min),
            poll_max: Some(worker.poll_max),
            ..Self::default()
        });
        let expand = |path: Option<PathBuf>| path.map(|path| environment.expand(path));
        Self {
            key_path: expand(all.key_path).or_else(|| usual_key(environment)),
            agent_socket: expand(all.agent_socket),
            known_hosts: all
                .known_hosts
                .map(|files| files.into_iter().map(|f| environment.expand(f)).collect()),
            ..all
        }
    }
}

/// The key that `ssh` itself would take, when the configuration names none.
fn usual_key(environment: &Environment) -> Option<PathBuf> {
    let dir = environment.home()?.join(".ssh");
    ["id_ed25519", "id_ecdsa", "id_rsa"].iter().map(|name| dir.join(name)).find(|path| path.is_file())
}

/// Checks one complete cluster. What it returns is good only if no fault was found.
pub(crate) fn check(settings: &ClusterSettings, faults: &mut Faults) -> Option<ClusterConfig> {
    let name = faults.required("name", settings.name.as_ref(), "a short name, such as \"dgx\"");
    let user = faults.required("user", settings.user.as_ref(), "your login name on the cluster");
    let hosts: Vec<HostPort> = faults.each("hosts", settings.hosts.as_ref());
    if settings.hosts.as_ref().is_none_or(Vec::is_empty) {
        faults.add_as(
            "hosts",
            REQUIRED,
            "is missing; list the login hosts, such as [\"login1\", \"login2:2222\"]",
        );
    }
    let base_dir = settings.base_results_dir.as_ref();
    let base_dir = base_dir.and_then(|text| faults.parse("base_results_dir", text));
    let account = settings.account.as_ref().and_then(|text| faults.parse("account", text));
    let partitions = settings.partitions.as_ref().map(|list| list.join(","));
    let partitions = partitions.and_then(|text| faults.parse("partitions", &text));
    let mounts: Vec<Mount> = faults.each("container_mounts", settings.container_mounts.as_ref());
    let resources = resources(settings, faults);
    let (poll_min, poll_max) = pace(settings, faults);
    let ssh = connection(settings, hosts, faults);
    let retries = cluster_policies::retries(settings, faults);
    let batch = cluster_policies::batch(settings, faults);
    let base_dir: RemotePath = domain::base_of(base_dir?);
    let images = cluster_policies::images(settings, &base_dir, faults);
    let cluster = Cluster {
        name: name?,
        user: user?,
        hosts: ssh.hosts.iter().map(|host| host.host().to_owned()).collect(),
        base_dir,
        account,
        partitions,
        mounts,
        resources: resources?,
        max_time_hours: settings.max_time_hours.unwrap_or(MAX_TIME_HOURS),
        images: images?,
        retries,
        batch,
    };
    Some(ClusterConfig { cluster, ssh, poll_min, poll_max })
}

/// The defaults of a job's resources, under the very rules that hold for a job.
fn resources(settings: &ClusterSettings, faults: &mut Faults) -> Option<Resources> {
    let max = settings.max_time_hours.unwrap_or(MAX_TIME_HOURS);
    let (least, most) = (Resources::LEAST_HOURS, Resources::MOST_HOURS);
    if !(least..=most).contains(&max) {
        let advice = format_args!("must be a number of hours from {least} to {most}, such as 4");
        faults.add_as("max_time_hours", OUT_OF_RANGE, advice);
        return None;
    }
    let asked = ResourcesRequest {
        num_nodes: settings.num_nodes,
        num_gpus: settings.num_gpus,
        gpus_per_node: None,
        max_num_gpus_per_node: settings.max_num_gpus_per_node,
        cpus_per_task: settings.cpus_per_task,
        time_hours: settings.time_hours,
        timeout_hours: settings.timeout_hours,
        master_port: None,
    };
    let packaged = Resources::packaged().map_err(|error| faults.add("time_hours", error)).ok()?;
    Resources::from_request(&asked, &packaged, max)
        .map_err(|violations| {
            for violation in violations {
                let key = violation.pointer.trim_start_matches("/resources/");
                faults.add_as(key, violation.code, violation.detail);
            }
        })
        .ok()
}

fn pace(settings: &ClusterSettings, faults: &mut Faults) -> (Duration, Duration) {
    let (min, max) = (settings.poll_min.unwrap_or_default(), settings.poll_max.unwrap_or_default());
    if min < Duration::from_secs(1) {
        let advice = "is less than 1s, which a scheduler will not thank us for; write at least \"1s\"";
        faults.add_as("poll_min", OUT_OF_RANGE, advice);
    }
    if max < min {
        faults.add_as("poll_max", OUT_OF_RANGE, "is less than poll_min; raise it or lower poll_min");
    }
    if max > MOST_POLL {
        faults.add_as(
            "poll_max",
            OUT_OF_RANGE,
            "is more than a day; jobs are watched by polls, so write for example \"60s\"",
        );
    }
    (min, max)
}

fn connection(settings: &ClusterSettings, hosts: Vec<HostPort>, faults: &mut Faults) -> SshConfig {
    let sessions = settings.sessions.unwrap_or(2);
    if !(1..=4).contains(&sessions) {
        let advice = "must be from 1 to 4: each is a connection that the login node carries";
        faults.add_as("sessions", OUT_OF_RANGE, advice);
    }
    let connect_timeout = settings.connect_timeout.unwrap_or_default();
    if connect_timeout.is_zero() || connect_timeout > MOST_CONNECT {
        faults.add_as(
            "connect_timeout",
            OUT_OF_RANGE,
            "must be above 0 and at most 5m; write for example \"10s\"",
        );
    }
    for (index, line) in settings.host_keys.iter().flatten().enumerate() {
        if let Err(reason) = ssh::check_host_key_line(line) {
            let advice = format!(
                "{line:?} is no known_hosts line ({reason}); write \"HOST TYPE BASE64\", as ssh-keyscan prints it"
            );
            faults.add_at("host_keys", index, advice);
        }
    }
    SshConfig {
        key_path: settings.key_path.clone(),
        use_agent: settings.agent_socket.is_some(),
        agent_socket: settings.agent_socket.clone(),
        known_hosts: settings.known_hosts.clone().unwrap_or_default(),
        pinned_host_keys: settings.host_keys.clone().unwrap_or_default(),
        sessions,
        connect_timeout,
        keepalive: KEEPALIVE,
        ..SshConfig::new(settings.user.as_deref().unwrap_or_default().trim(), hosts)
    }
}
