//! The program that a job's batch script starts.

use std::collections::BTreeMap;

use remote::{Container, CosmosNodes, Launch, OnWarning, TaskSetup, script::is_of_hooks};
use slurm::{EnvKey, InvalidName};

use crate::{
    job::{attempt::Attempt, paths::JobPaths, stored::Job},
    request::{
        cosmos::{self, CosmosPlan},
        spec::{CUDA_OVERRIDE, JobSpec, Work},
    },
};

/// TAO's container entry point with its arguments.
pub(super) fn tao_command(job: &Job, paths: &JobPaths, network_arch: &str, action: &str) -> Vec<String> {
    let id = job.id.to_string();
    let words = [
        "python",
        "-m",
        "nvidia_tao_core.microservices.handlers.container_handler",
        "--neural-network-name",
        network_arch,
        "--action-name",
        action,
        "--job-id",
        &id,
        "--specs-file",
        paths.specs.as_str(),
        "--docker-env-vars-file",
        paths.env_json.as_str(),
        "--cloud-metadata-file",
        paths.meta.as_str(),
    ];
    words.map(str::to_owned).to_vec()
}

/// How the program starts: in the job's container, or on the node itself. `open`: the plain variables.
pub(super) fn launch(
    spec: &JobSpec,
    attempt: &Attempt,
    argv: Vec<String>,
    open: &BTreeMap<EnvKey, String>,
    plan: Option<&CosmosPlan>,
) -> Launch {
    let launched = attempt.image.as_ref().map(|launched| &launched.image);
    let Some(image) = launched.or(spec.image.as_ref()) else { return Launch::Host { argv } };
    let mut mounts: Vec<String> = spec.mounts.iter().map(ToString::to_string).collect();
    // The job's own files are below the base directory, so the container always mounts it.
    let base = attempt.job_dir.as_str();
    if !mounts.iter().any(|mount| base == mount || base.starts_with(&format!("{mount}/"))) {
        mounts.push(base.to_owned());
    }
    let hook_env = open.iter().filter(|(key, value)| is_of_hooks(key, value));
    let hook_env = hook_env.map(|(key, value)| (key.clone(), value.clone())).collect();
    let container = Container { image: image.pyxis(), mounts, hook_env, argv };
    if !is_cosmos(spec) {
        return Launch::Container(container);
    }
    let roles = plan.map(|plan| CosmosNodes {
        policy: plan.policy.nodes,
        rollout: plan.rollout.map_or(0, |rollout| rollout.nodes),
        controller_port: cosmos::CONTROLLER_PORT,
    });
    Launch::Cosmos { container, roles }
}

/// The setup of each task.
pub(super) fn task(spec: &JobSpec, open: &BTreeMap<EnvKey, String>) -> Result<TaskSetup, InvalidName> {
    let cuda = open.iter().find(|(key, value)| key.as_str() == CUDA_OVERRIDE && !value.is_empty());
    Ok(TaskSetup {
        // A command on the node itself may use Slurm's variables.
        lightning_safe: spec.image.is_some() && !is_cosmos(spec),
        cuda: cuda.map(|(_, version)| version.parse()).transpose()?,
        on_warning: match spec.work {
            Work::Tao { .. } => OnWarning::Ignore,
            // The command's shell ignores the warning, unless the command's text traps it.
            Work::Command { .. } => OnWarning::Default,
        },
    })
}

pub(super) fn is_cosmos(spec: &JobSpec) -> bool {
    match &spec.work {
        Work::Tao { network_arch, .. } => network_arch.as_str() == cosmos::NETWORK,
        Work::Command { .. } => false,
    }
}
