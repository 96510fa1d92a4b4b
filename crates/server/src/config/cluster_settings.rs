//! One `[[clusters]]` table, and the environment variables for it.

use std::{path::PathBuf, time::Duration};

use domain::{BatchSettings, ContainerRuntime, ImagePolicy, RetrySettings};
use slurm::GpuRequest;

use super::{
    declare::{self, Source, section},
    environment::Environment,
    problems::Problems,
};

section! {
    /// One table for each cluster. Jobs that name no cluster go to the first one.
    ///
    /// The environment variables are for the cluster that SLURM_CLUSTER_NAME names; without it, for the only cluster of this file. If
    /// this file has no such cluster and SLURM_HOSTNAME is set, they define one more.
    ClusterSettings {
        /// The name in requests and answers. Default: "default", if only the environment defines the cluster.
        name: Option<String>, env "SLURM_CLUSTER_NAME", required "\"dgx\"";
        /// The login name on the cluster.
        user: Option<String>, env "SLURM_USER" | "SSH_USER", required "\"svc-tao\"";
        /// The login hosts with optional ports, the preferred one first. The service fails over between them.
        hosts: Option<Vec<String>>, env "SLURM_HOSTNAME" | "SSH_HOST", required "[\"login1.example.org\", \"login2.example.org:2222\"]";
        /// A private key without passphrase, which is tried first. Default: ~/.ssh/id_ed25519, id_ecdsa or id_rsa.
        key_path: Option<PathBuf>, env "SSH_KEY_PATH", example "\"/etc/tao-slurm/id_ed25519\"";
        /// The socket of an SSH agent, which is tried second. The variable is for every cluster without this key.
        agent_socket: Option<PathBuf>, env "SSH_AUTH_SOCK", example "\"/run/user/1000/ssh-agent.socket\"";
        /// Files with the login hosts' keys. The service refuses a host that is in none of them.
        known_hosts: Vec<PathBuf> = ["~/.ssh/known_hosts", "/etc/ssh/ssh_known_hosts"].map(PathBuf::from).to_vec(), env "SSH_KNOWN_HOSTS";
        /// Further known_hosts lines, as ssh-keyscan prints them. Compare the fingerprint before you trust one.
        host_keys: Vec<String>, example "[\"login1.example.org ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAA…\"]";
        /// The Slurm account to charge. Default: the user's default account.
        account: Option<String>, env "SLURM_ACCOUNT", example "\"vision\"";
        /// The partitions for jobs that name none. Default: the cluster's default partition.
        partitions: Option<Vec<String>>, env "SLURM_PARTITION", example "[\"polar\", \"polar3\"]";
        /// The directory for specs, scripts, logs and results. Results are in its `results`; a path that ends in /results means its
        /// parent. Default: /lustre/fsw/portfolios/edgeai/users/<user>.
        base_results_dir: Option<String>, env "SLURM_BASE_RESULTS_DIR", example "\"/lustre/fsw/portfolios/edgeai/users/svc-tao\"";
        /// The mounts of containers: "/source", "/source:/inside" or "/source:/inside:ro".
        container_mounts: Vec<String> = vec!["/lustre".to_owned()], env "SLURM_CONTAINER_MOUNTS";
        /// Directories that only the nodes have. Image files, inputs and data sets below them are not checked before a job is
        /// submitted; all others must exist on the login host.
        node_local_paths: Vec<String>, example "[\"/raid\"]";
        /// The nodes of a job. A job can override this and the keys up to timeout_hours.
        num_nodes: u32 = 1;
        /// The GPUs of a job: per node if below max_num_gpus_per_node; from there on whole nodes that hold this total.
        num_gpus: u32 = 4, env "SLURM_NUM_GPUS";
        /// The GPUs that a node has.
        max_num_gpus_per_node: u32 = 8, env "SLURM_MAX_GPUS_PER_NODE";
        /// The tasks of each node, for jobs with a command. A TAO job has one.
        tasks_per_node: u32 = 1;
        /// The CPUs of each task.
        cpus_per_task: u32 = 16, env "SLURM_CPUS_PER_TASK";
        /// Slurm's time limit in hours. Default: 4, or max_time_hours if that is less.
        time_hours: Option<f64>, env "SLURM_TIME_HOURS", example "4.0";
        /// The job's own time limit in hours, which lets it end in order before Slurm kills it. Default: 0.2 less than time_hours.
        timeout_hours: Option<f64>, env "SLURM_TIMEOUT_HOURS", example "3.8";
        /// The longest time limit in hours that a job may ask for, if the cluster does not report the limits of its partitions.
        /// It also limits TAO's packaged partitions polar,polar3,polar4,grizzly, whatever the cluster allows.
        max_time_hours: f64 = 4.0;
        /// How jobs ask Slurm for GPUs: "gres" (--gres=gpu:4) or "gpus-per-node" (--gpus-per-node=4).
        gpu_request: String = GpuRequest::default().to_string();
        /// The plugin for jobs with MPI, as "srun --mpi=list" names it. A job can override it. Default: MpiDefault of Slurm.
        mpi_plugin: Option<String>, example "\"pmix\"";
        /// The type of GPUs. A job can override this and the keys up to sbatch_options. Default: any type.
        gpu_type: Option<String>, example "\"a100\"";
        /// The memory of each node; "0" for all of it. At most one of the three. Default: that of the partition.
        memory: Option<String>, example "\"64G\"";
        /// The memory of each CPU.
        memory_per_cpu: Option<String>, example "\"4G\"";
        /// The memory of each GPU.
        memory_per_gpu: Option<String>, example "\"32G\"";
        /// Generic resources of each node: "NAME:COUNT" or "NAME:TYPE:COUNT". Jobs ask for GPUs, MPS and shards themselves.
        gres: Vec<String>, example "[\"nvme:1\"]";
        /// The features of nodes. Default: any.
        constraint: Option<String>, example "\"ib&nvlink\"";
        /// Whether nodes are exclusive. Default: if a job has all GPUs of its nodes.
        exclusive: Option<bool>, example "true";
        /// Nodes that every job needs.
        nodelist: Option<String>, example "\"node[01-02]\"";
        /// Nodes that no job gets, beside those that failed.
        exclude: Option<String>, example "\"node13\"";
        /// Licenses.
        licenses: Option<String>, example "\"matlab:1\"";
        /// The most leaf switches between the nodes of a job, and how long it waits for so few.
        switches: Option<String>, example "\"1@00:30:00\"";
        /// The quality of service. Default: Slurm's.
        qos: Option<String>, example "\"normal\"";
        /// The reservations to use, comma-separated.
        reservation: Option<String>, example "\"course\"";
        /// How much the priority of jobs is lowered.
        nice: Option<i32>, example "100";
        /// Slurm's comment of jobs.
        comment: Option<String>, example "\"idle-gpu exempt\"";
        /// Further options of sbatch: a text or a number, true for an option without a value, or false for a line that the service
        /// would write and the site refuses. A job overrides each option by its own.
        sbatch_options: toml::Table, example "{ hint = \"nomultithread\", mem = false }";
        /// What makes the containers of jobs: "pyxis" or "apptainer". A job can override it. Images for Apptainer are never converted.
        container_runtime: String = ContainerRuntime::default().to_string();
        /// Convert a registry image once, in a short Slurm job, to a SquashFS file that all jobs share. Otherwise every node of every
        /// job pulls the image.
        use_sqsh: bool = ImagePolicy::default().use_sqsh, env "SLURM_USE_SQSH";
        /// Fail the job if the conversion fails. Otherwise the job pulls the image. A job can override it.
        require_sqsh: bool = ImagePolicy::default().require_sqsh, env "SLURM_REQUIRE_SQSH";
        /// Convert an image tagged `latest` again for each job.
        force_reconvert_latest: bool = ImagePolicy::default().force_reconvert_latest, env "SLURM_FORCE_RECONVERT_LATEST";
        /// The directory of converted images. Default: base_results_dir.
        sqsh_cache_dir: Option<String>, env "SLURM_SQSH_CACHE_DIR", example "\"/lustre/fsw/portfolios/edgeai/users/svc-tao\"";
        /// The partition for conversions, which need no GPU.
        conversion_partition: String = "cpu".to_owned(), env "SLURM_CONVERSION_PARTITION";
        /// The time limit of a conversion in minutes.
        conversion_minutes: u32 = 30, env "SLURM_CONVERSION_TIMEOUT_MINUTES";
        /// The memory of a conversion in gigabytes.
        conversion_memory_gb: u32 = 32, env "SLURM_CONVERSION_MEMORY_GB";
        /// Enroot's temporary directory during a conversion. Default: a directory in sqsh_cache_dir.
        enroot_temp_dir: Option<String>, env "SLURM_ENROOT_TEMP_PATH", example "\"/lustre/scratch/enroot\"";
        /// The most retries after infrastructure failures, 0 to 100. A job can override it.
        max_retries: u32 = RetrySettings::default().max_retries;
        /// Let Slurm requeue a job under the same id after a node failure or preemption. A job can override it.
        use_requeue: bool = RetrySettings::default().use_requeue, env "SLURM_USE_REQUEUE";
        /// The most times that a job may requeue itself at its time limit.
        max_requeues: u32 = RetrySettings::default().max_requeues;
        /// How long retries exclude a node that failed, in hours, unless no other node is left.
        node_exclusion_hours: u32 = RetrySettings::default().node_exclusion_hours;
        /// Cancel Slurm jobs that have this service's job names and are not in its database. Set it only if no other service with
        /// another database works for the same user. GET /clusters/NAME shows such jobs in any case.
        cancel_unknown_jobs: bool = RetrySettings::default().cancel_unknown_jobs;
        /// The address for Slurm's mails about every job. Default: no mails.
        mail_user: Option<String>, env "SLURM_MAIL_USER", example "\"team@example.org\"";
        /// A signal warns a job this many seconds before its time limit; 0 for no warning.
        warning_seconds: u32 = BatchSettings::default().warning_seconds;
        /// The login environment that a job inherits: "ALL", or "NIL" for Slurm's own variables only.
        sbatch_export: String = BatchSettings::default().sbatch_export.to_string();
        /// Jobs measure their use of GPUs, CPUs and memory every so many seconds, 0 to 3600; 0: never.
        usage_seconds: u32 = BatchSettings::default().usage_seconds;
        /// What becomes of jobs whose GPUs are all below so many percent (5) for so many minutes: "warn", "pause" or "cancel". Jobs with one of
        /// the labels are exempt, and those with a policy of their own. Default: nothing.
        idle_policy: Option<toml::Table>, example "{ below_percent = 5, minutes = 120, action = \"warn\", exempt_labels = [\"interactive\", \"team:vision\"] }";
        /// The SSH connections to the login hosts, 1 to 4.
        sessions: usize = 2;
        /// The time limit for each step of connecting.
        connect_timeout: Duration = Duration::from_secs(10);
        /// The shortest time between two polls of this cluster. Default: worker.poll_min.
        poll_min: Option<Duration>, example "\"5s\"";
        /// The longest time between two polls of this cluster. Default: worker.poll_max.
        poll_max: Option<Duration>, example "\"1m\"";
        /// The requests that the site allows one user to make of Slurm: so many at once, and so many per minute after that. Submissions and
        /// polls wait for it; cancellations go first. Default: no limit.
        rpc_budget: Option<toml::Table>, example "{ burst = 40, per_minute = 4 }";
    }
}

/// Adds the environment variables to the file's clusters, as the comment of `ClusterSettings` says.
pub(crate) fn with_environment(
    clusters: &mut Vec<ClusterSettings>,
    environment: &Environment,
    problems: &mut Problems,
) {
    let mut said = ClusterSettings::default();
    let source = Source::Variables(environment);
    declare::read_section(&mut said, source, "", &mut |place, advice| problems.add(place, advice));
    let agent = said.agent_socket.take();
    let meant = match (&said.name, clusters.as_slice()) {
        (None, [_]) => Some(0),
        (name, _) => {
            let name = name.as_deref().unwrap_or("default");
            clusters.iter().position(|cluster| cluster.name.as_deref() == Some(name))
        }
    };
    match meant.and_then(|index| clusters.get_mut(index)) {
        Some(cluster) => {
            let own = cluster.agent_socket.take();
            // What is wrong was reported above.
            declare::read_section(cluster, source, "", &mut |_, _| {});
            cluster.agent_socket = own;
        }
        None if said.hosts.is_some() => {
            said.name.get_or_insert_with(|| "default".to_owned());
            clusters.push(said);
        }
        None => {}
    }
    // The agent belongs to the account that runs the service, so every cluster without one of its own can use it.
    for cluster in clusters {
        cluster.agent_socket = cluster.agent_socket.take().or_else(|| agent.clone());
    }
}
