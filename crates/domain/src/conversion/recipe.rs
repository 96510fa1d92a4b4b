//! The job that converts an image.

use std::collections::{BTreeMap, BTreeSet};

use remote::script;
use serde_json::Map;
use slurm::{Memory, MemoryRequest, RemotePath, RunTime, SubmitOptions, WallTime};

use super::CachedImage;
use crate::{
    clock::Timestamp,
    cluster::{policy::ImagePolicy, resources::Resources, target::Cluster},
    job::{
        identity::JobId,
        stored::{Job, Owner},
    },
    launch::StagingError,
    request::{
        program::ProgramSettings,
        restart::{Restart, RestartCause},
        spec::{DEFAULT_MASTER_PORT, JobSpec, Work},
    },
};

/// How often in a row a conversion is repeated after the infrastructure ended it.
const MOST_RETRIES: u32 = 3;

/// The job that converts `image` into the file `target`: one command on one node of the cluster's partition for conversions.
pub fn conversion_job(
    id: JobId,
    image: &CachedImage,
    target: &RemotePath,
    cluster: &Cluster,
    now: Timestamp,
) -> Result<Job, StagingError> {
    let settings = &cluster.images;
    let temp_root = match &settings.temp_dir {
        Some(dir) => dir.clone(),
        None => settings.cache_dir.join(".enroot-tmp")?,
    };
    let text = script::conversion(&image.image.enroot(), target, &temp_root)?;
    let minutes = settings.conversion_minutes;
    let zero = || script::ScriptError::Zero { what: "the minutes of a conversion" };
    let time = WallTime::from_minutes(minutes).ok_or_else(zero)?;
    // Some sites refuse the option.
    let memory_gb = Some(settings.conversion_memory_gb).filter(|_| !cluster.submit.options.drops("mem"));
    let memory = memory_gb.map(|memory_gb| format!("{memory_gb}G").parse::<Memory>()).transpose()?;
    let mut restart = Restart::default();
    restart.on.insert(RestartCause::Preempted);
    let spec = JobSpec {
        name: format!("conversion of {}", image.image).parse().ok(),
        labels: BTreeMap::new(),
        work: Work::Command { text },
        array: None,
        needs: Vec::new(),
        pipeline: None,
        results: Vec::new(),
        progress: None,
        image: None,
        image_policy: ImagePolicy::default(),
        env: BTreeMap::new(),
        secret_env: BTreeSet::new(),
        cloud_plain: Map::new(),
        cloud_secret_keys: BTreeSet::new(),
        inputs: Vec::new(),
        required_paths: Vec::new(),
        resources: Resources {
            nodes: 1,
            gpus_per_node: 0,
            max_gpus_per_node: cluster.resources.max_gpus_per_node,
            tasks_per_node: 1,
            cpus_per_task: 1,
            exclusive: false,
            time,
            soft_timeout: u32::try_from(time.seconds())
                .ok()
                .and_then(RunTime::from_seconds)
                .ok_or_else(zero)?,
        },
        requested_gpus: None,
        // It listens on no port.
        master_port: Some(DEFAULT_MASTER_PORT),
        program: ProgramSettings::default(),
        max_retries: MOST_RETRIES,
        restart,
        // With a requeue, the script's own limit would begin it anew.
        use_requeue: false,
        timeout_minutes: None,
        idle_policy: None,
        mounts: Vec::new(),
        mount_home: None,
        partitions: Some(settings.conversion_partition.as_str().parse()?),
        options: SubmitOptions {
            account: cluster.account.clone(),
            memory: memory.map(MemoryRequest::PerNode),
            ..SubmitOptions::default()
        },
        begin: None,
        deadline: None,
        notes: Vec::new(),
        trace: None,
    };
    Ok(Job::accepted(id, Owner::SERVICE, cluster.name.clone(), spec, now))
}
