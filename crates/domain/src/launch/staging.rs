//! A job's files and batch script, as one submission.

mod environment;
mod files;
mod launch;

use std::collections::BTreeSet;

use remote::{BatchScript, Directives, ScriptError, StagedFile, Submission};
use secrecy::ExposeSecret;
use slurm::{InvalidName, RemotePath};

use crate::{
    cluster::{policy::SbatchExport, target::Cluster},
    job::{attempt::Attempt, paths::JobPaths, stored::Job},
    request::{
        cosmos::{self, CosmosPlan},
        secret::Secrets,
        spec::Work,
    },
};
pub(crate) use environment::CUDA_OVERRIDE;
use launch::{is_cosmos, launch, tao_command, task};

/// Why a job cannot be put into files: always a defect of ours, since the request was validated.
#[derive(Debug, thiserror::Error)]
pub enum StagingError {
    #[error("a path or a value of the job is not valid")]
    Path(#[from] InvalidName),
    #[error("the batch script cannot be written")]
    Script(#[from] ScriptError),
    #[error("a file of the job cannot be written as JSON")]
    Json(#[from] serde_json::Error),
    #[error("the roles of the job cannot be dealt to its nodes")]
    Roles,
}

const PRIVATE: u32 = 0o600;
const SHARED: u32 = 0o644;

/// Everything that one remote command needs to stage and submit this attempt, and the script it submits.
pub fn plan_submission(
    job: &Job,
    attempt: &Attempt,
    cluster: &Cluster,
    secrets: &Secrets,
) -> Result<Submission, StagingError> {
    let paths = JobPaths::new(&attempt.job_dir, job.id)?;
    let state_dir = paths.state(attempt)?;
    let plan = roles(job)?;
    let open = environment::open(job, attempt, &paths, plan.as_ref())?;
    let (argv, mut files) = match &job.spec.work {
        Work::Tao { network_arch, action, specs } => {
            let argv = tao_command(job, &paths, network_arch.as_str(), action.as_str());
            (argv, files::tao_files(&paths, &job.spec, specs, &open, secrets)?)
        }
        Work::Command { text } => {
            let file = state_dir.join("command.sh")?;
            let argv = ["bash", "-euo", "pipefail", file.as_str()].map(str::to_owned).to_vec();
            // The warning before a time limit ends nobody who has not asked for it. On the first line, so that the
            // shell's messages name the lines as they were written.
            let bytes = format!("trap '' USR1; {text}").into_bytes();
            (argv, vec![StagedFile { path: file, mode: SHARED, bytes }])
        }
    };
    let launch = launch(&job.spec, attempt, &open, secrets, argv, plan.as_ref());
    let env_file = (!secrets.env.is_empty()).then(|| paths.env_shell.clone());
    if let Some(path) = &env_file {
        let secret = secrets.env.iter().map(|(key, value)| (key, value.expose_secret()));
        let bytes = remote::script::env_file(secret)?.into_bytes();
        files.push(StagedFile { path: path.clone(), mode: PRIVATE, bytes });
    }
    let script = BatchScript {
        directives: directives(job, attempt, cluster),
        state_dir: state_dir.clone(),
        log_root: paths.log_root.clone(),
        results_dir: paths.results.clone(),
        env_file,
        task: task(&job.spec, &open)?,
        exports: open.into_iter().collect(),
        soft_timeout: Some(job.spec.resources.soft_timeout),
        max_requeues: cluster.retries.max_requeues,
        master_port: job.spec.master_port,
        launch,
    };
    files.push(StagedFile { path: paths.script.clone(), mode: SHARED, bytes: script.render()?.into_bytes() });
    let parents = files.iter().filter_map(|file| file.path.parent());
    // Also without a secret: at the end all of them have to be surely gone, which a missing directory does not say.
    let private = paths.secret_files();
    let private = private.iter().filter_map(RemotePath::parent);
    let make_dirs: BTreeSet<RemotePath> =
        parents.chain(private).chain([paths.log_root, paths.results_root, state_dir.clone()]).collect();
    Ok(Submission {
        key: attempt.key(job.id),
        state_dir,
        files,
        script_path: paths.script,
        make_dirs: make_dirs.into_iter().collect(),
        results_dir: Some(paths.results),
        inputs: job.spec.required_paths.clone(),
        base_dir: attempt.job_dir.clone(),
        send: attempt.fence.newest,
        cleared: attempt.fence.cleared,
    })
}

/// The roles of a Cosmos-RL training on several nodes, dealt to them as when it was accepted.
fn roles(job: &Job) -> Result<Option<CosmosPlan>, StagingError> {
    let resources = &job.spec.resources;
    match &job.spec.work {
        Work::Tao { network_arch, action, specs }
            if resources.nodes > 1 && cosmos::is_training(network_arch.as_str(), action.as_str()) =>
        {
            let plan = cosmos::plan(specs, resources.gpus_per_node).map_err(|_| StagingError::Roles)?;
            if plan.nodes() == resources.nodes { Ok(Some(plan)) } else { Err(StagingError::Roles) }
        }
        Work::Tao { .. } | Work::Command { .. } => Ok(None),
    }
}

fn directives(job: &Job, attempt: &Attempt, cluster: &Cluster) -> Directives {
    let spec = &job.spec;
    let resources = spec.resources;
    Directives {
        job_name: attempt.token.clone(),
        partitions: spec.partitions.clone(),
        account: cluster.account.clone(),
        nodes: resources.nodes,
        gpus_per_node: resources.gpus_per_node,
        cpus_per_task: resources.cpus_per_task,
        time: resources.time,
        requeue: spec.use_requeue,
        exclusive: resources.exclusive,
        all_memory: is_cosmos(spec),
        exclude: attempt.excluded.clone(),
        mail: cluster.batch.mail_user.clone(),
        trace: spec.trace.clone(),
        login_environment: cluster.batch.sbatch_export == SbatchExport::All,
        warning_seconds: cluster.batch.warning_seconds,
    }
}

#[cfg(test)]
mod tests;
