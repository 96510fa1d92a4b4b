//! Turns the settings of a cluster into what jobs and connections need.

use std::{path::PathBuf, time::Duration};

use domain::{Cluster, Mount, Resources, ResourcesRequest};
use slurm::RemotePath;
use ssh::{HostPort, SshConfig};

use super::{
    cluster_options, cluster_policies,
    cluster_settings::ClusterSettings,
    environment::Environment,
    faults::{Faults, OUT_OF_RANGE, REQUIRED},
    settings::Worker,
};

/// A checked cluster.
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
const MOST_POLL: Duration = Duration::from_hours(24);
const MOST_CONNECT: Duration = Duration::from_mins(5);

impl ClusterSettings {
    /// Sets the defaults that depend on other settings, so that `check-config` shows them.
    pub(crate) fn complete(&mut self, environment: &Environment, worker: &Worker) {
        if let (None, Some(user)) = (&self.base_results_dir, &self.user) {
            self.base_results_dir = Some(format!("{USERS_DIR}/{user}"));
        }
        let base = self.base_results_dir.as_ref().and_then(|text| text.parse().ok());
        let cache = base.map(|path| domain::base_of(path).to_string());
        self.sqsh_cache_dir = self.sqsh_cache_dir.take().or(cache);
        let time = *self.time_hours.get_or_insert(4.0_f64.min(self.max_time_hours));
        // As for a job: 0.2 hours below the wall time, or half of a very short one.
        self.timeout_hours.get_or_insert((time - 0.2).max(time / 2.0).max(Resources::LEAST_HOURS));
        self.poll_min.get_or_insert(worker.poll_min);
        self.poll_max.get_or_insert(worker.poll_max);
        let expand = |path: &mut PathBuf| *path = environment.expand(std::mem::take(path));
        self.known_hosts.iter_mut().chain(&mut self.key_path).chain(&mut self.agent_socket).for_each(expand);
        self.key_path = self.key_path.take().or_else(|| usual_key(environment));
    }
}

/// The key that `ssh` would use.
fn usual_key(environment: &Environment) -> Option<PathBuf> {
    let dir = environment.home()?.join(".ssh");
    ["id_ed25519", "id_ecdsa", "id_rsa"].iter().map(|name| dir.join(name)).find(|path| path.is_file())
}

/// Checks complete settings. The result is valid only if no fault was found.
pub(crate) fn check(settings: &ClusterSettings, faults: &mut Faults) -> Option<ClusterConfig> {
    let name = faults.required("name", settings.name.as_ref(), "a short name, such as \"dgx\"");
    let user = faults.required("user", settings.user.as_ref(), "your login name on the cluster");
    let hosts: Vec<HostPort> = faults.each("hosts", settings.hosts.iter().flatten());
    if settings.hosts.as_ref().is_none_or(Vec::is_empty) {
        faults.add_as(
            "hosts",
            REQUIRED,
            "is missing; list the login hosts, such as [\"login1\", \"login2:2222\"]",
        );
    }
    let base_dir = faults.parse_some("base_results_dir", settings.base_results_dir.as_ref());
    let account = faults.parse_some("account", settings.account.as_ref());
    let partitions = settings.partitions.as_ref().map(|list| list.join(","));
    let partitions = faults.parse_some("partitions", partitions.as_ref());
    let mounts: Vec<Mount> = faults.each("container_mounts", &settings.container_mounts);
    let node_local: Vec<RemotePath> = faults.each("node_local_paths", &settings.node_local_paths);
    let resources = resources(settings, faults);
    let (poll_min, poll_max) = pace(settings, faults);
    let ssh = connection(settings, hosts, faults);
    let retries = cluster_policies::retries(settings, faults);
    let batch = cluster_policies::batch(settings, faults);
    let submit = cluster_options::submit(settings, faults);
    let rpc_budget = cluster_policies::rpc_budget(settings, faults);
    let base_dir: RemotePath = domain::base_of(base_dir?);
    if base_dir.as_str().parse::<Mount>() != Ok(Mount::from(base_dir.clone())) {
        let advice = "must have no comma, colon, $, backquote, quotes or backslash: containers mount it";
        faults.add("base_results_dir", advice);
    }
    let images = cluster_policies::images(settings, &base_dir, faults);
    let cluster = Cluster {
        name: name?,
        user: user?,
        hosts: ssh.hosts.iter().map(|host| host.host().to_owned()).collect(),
        base_dir,
        account,
        partitions,
        mounts,
        node_local,
        resources: resources?,
        max_time_hours: settings.max_time_hours,
        images: images?,
        retries,
        batch: batch?,
        submit: submit?,
        rpc_budget,
    };
    Some(ClusterConfig { cluster, ssh, poll_min, poll_max })
}

/// The defaults of a job's resources, under the rules for a job.
fn resources(settings: &ClusterSettings, faults: &mut Faults) -> Option<Resources> {
    let max = settings.max_time_hours;
    let (least, most) = (Resources::LEAST_HOURS, Resources::MOST_HOURS);
    if !(least..=most).contains(&max) {
        let advice = format_args!("is {max}; write a number of hours from {least} to {most}, such as 4");
        faults.add_as("max_time_hours", OUT_OF_RANGE, advice);
        return None;
    }
    let asked = ResourcesRequest {
        num_nodes: Some(settings.num_nodes),
        num_gpus: Some(settings.num_gpus),
        gpus_per_node: None,
        max_num_gpus_per_node: Some(settings.max_num_gpus_per_node),
        tasks_per_node: Some(settings.tasks_per_node),
        cpus_per_task: Some(settings.cpus_per_task),
        time_hours: settings.time_hours,
        timeout_hours: settings.timeout_hours,
        ..ResourcesRequest::default()
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
        let advice = "is less than 1s, which overloads the scheduler; write at least \"1s\"";
        faults.add_as("poll_min", OUT_OF_RANGE, advice);
    }
    if max < min {
        faults.add_as("poll_max", OUT_OF_RANGE, "is less than poll_min; raise it or lower poll_min");
    }
    if max > MOST_POLL {
        let advice = "is more than a day, so job states would be out of date; write for example \"1m\"";
        faults.add_as("poll_max", OUT_OF_RANGE, advice);
    }
    (min, max)
}

fn connection(settings: &ClusterSettings, hosts: Vec<HostPort>, faults: &mut Faults) -> SshConfig {
    let ClusterSettings { sessions, connect_timeout, .. } = *settings;
    if !(1..=4).contains(&sessions) {
        let advice = format_args!(
            "is {sessions}; write a number from 1 to 4, because each is a connection to the login host"
        );
        faults.add_as("sessions", OUT_OF_RANGE, advice);
    }
    if connect_timeout.is_zero() || connect_timeout > MOST_CONNECT {
        let advice = "must be above 0 and at most 5m; write for example \"10s\"";
        faults.add_as("connect_timeout", OUT_OF_RANGE, advice);
    }
    for (index, line) in settings.host_keys.iter().enumerate() {
        if let Err(reason) = ssh::check_host_key_line(line) {
            let advice = format!(
                "{line:?} is not a known_hosts line ({reason}); write \"HOST TYPE BASE64\", as ssh-keyscan prints it"
            );
            faults.add_at("host_keys", index, advice);
        }
    }
    SshConfig {
        key_path: settings.key_path.clone(),
        use_agent: settings.agent_socket.is_some(),
        agent_socket: settings.agent_socket.clone(),
        known_hosts: settings.known_hosts.clone(),
        pinned_host_keys: settings.host_keys.clone(),
        sessions,
        connect_timeout,
        keepalive: KEEPALIVE,
        ..SshConfig::new(settings.user.as_deref().unwrap_or_default().trim(), hosts)
    }
}
