//! From a job to its submission: the staged files and the batch script.

mod environment;
mod program;

use std::collections::{BTreeMap, BTreeSet};

use remote::{
    BatchScript, Directives, ScriptError, StagedFile, Submission,
    script::{ArrayNumbers, Chain, env_text, task_line},
};
use secrecy::ExposeSecret;
use serde_json::{Map, Value, json};
use slurm::{EnvKey, InvalidName, Moment, RemotePath, RunTime, SbatchTime, WallTime};

use crate::{
    cluster::{policy::SbatchExport, resources::Resources, target::Cluster},
    job::{
        attempt::Attempt,
        identity::{AttemptNo, Origin},
        paths::JobPaths,
        stored::Job,
    },
    request::{
        array::{JobArray, value_text},
        cosmos::{self, ProgramError},
        secret::Secrets,
        spec::{JobSpec, Work},
    },
};
use program::{MAIN, SETUP, Site, command, component, several, tao_command};

/// Why a job cannot be staged. It is always a defect of the service, since the request was validated.
#[derive(Debug, thiserror::Error)]
pub enum StagingError {
    #[error("a path or a value of the job is invalid")]
    Path(#[from] InvalidName),
    #[error("the batch script cannot be written")]
    Script(#[from] ScriptError),
    #[error("a file of the job cannot be written as JSON")]
    Json(#[from] serde_json::Error),
    #[error("the job has no program")]
    Program(#[from] ProgramError),
}

/// Where a program writes its results.
const RESULTS: &str = "TAO_API_RESULTS_DIR";
const PRIVATE: u32 = 0o600;
const SHARED: u32 = 0o644;

/// The submission of an attempt: all that one remote command needs to stage and submit it.
pub fn plan_submission(
    job: &Job,
    attempt: &Attempt,
    cluster: &Cluster,
    secrets: &Secrets,
) -> Result<Submission, StagingError> {
    let paths = JobPaths::new(&attempt.job_dir, job.id)?;
    let state_dir = paths.state(attempt)?;
    let mut open = environment::open(job, attempt, &paths)?;
    let mut files = Vec::new();
    let argv = match &job.spec.work {
        Work::Tao { network_arch, action, .. } => {
            tao_command(job, &paths, network_arch.as_str(), action.as_str())
        }
        Work::Command { text } => {
            let (file, argv) = command(&MAIN.parse()?, text, &state_dir)?;
            files.push(file);
            argv
        }
        Work::Components { .. } => Vec::new(),
    };
    let settings = &job.spec.program;
    if !settings.files.is_empty() {
        let dir = state_dir.join("files")?;
        for (path, file) in &settings.files {
            files.push(StagedFile { path: dir.join(path)?, mode: file.mode, bytes: file.bytes() });
        }
        open.insert("TAO_JOB_FILES".parse()?, dir.to_string());
    }
    if !settings.setup.is_empty() {
        let lines = settings.setup.iter().map(|line| format!("{line}\0"));
        let bytes = lines.collect::<String>().into_bytes();
        files.push(StagedFile { path: state_dir.join(SETUP)?, mode: SHARED, bytes });
    }
    let base = component(&job.spec, attempt, &state_dir, argv, &open)?;
    let program = match &job.spec.work {
        Work::Components { list } => {
            let site = Site { job, attempt, paths: &paths, state_dir: &state_dir, open: &open, secrets };
            several(list, &base, &site, &mut files)?
        }
        Work::Tao { .. } | Work::Command { .. } => cosmos::expand(&job.spec, base)?,
    };
    open.extend(program.env);
    if let Work::Tao { specs, .. } = &job.spec.work {
        files.extend(tao_files(&paths, &job.spec, specs, &open, secrets)?);
    }
    let script = BatchScript {
        directives: Directives { all_memory: program.all_memory, ..directives(job, attempt, cluster) },
        state_dir: state_dir.clone(),
        log_root: paths.log_root.clone(),
        results_dir: paths.results.clone(),
        env_file: paths.env_shell.clone(),
        soft_timeout: Some(time_limits(job).1),
        max_requeues: cluster.retries.max_requeues,
        port: job.spec.port(),
        usage_seconds: cluster.batch.usage_seconds,
        array: job
            .spec
            .array
            .as_ref()
            .map(|array| ArrayNumbers { base: attempt.base, count: array.tasks().len() }),
        chain: chain(job, attempt, &paths.script)?,
        variables: program.variables,
        components: program.components,
    };
    if let Some(array) = &job.spec.array {
        // The batch script sets it for each task.
        open.retain(|key, _| key.as_str() != RESULTS);
        let path = state_dir.join("tasks.list")?;
        files.push(StagedFile { path, mode: SHARED, bytes: task_list(array, attempt)?.into_bytes() });
    }
    let secret = secrets.env.iter().map(|(key, value)| (key, value.expose_secret()));
    let vars = open.iter().map(|(key, value)| (key, value.as_str())).chain(secret);
    let bytes = env_text(vars)?.into_bytes();
    files.push(StagedFile { path: paths.env_shell.clone(), mode: PRIVATE, bytes });
    files.push(StagedFile { path: paths.script.clone(), mode: SHARED, bytes: script.render()?.into_bytes() });
    let is_checked = |path: &&RemotePath| cluster.node_local.iter().all(|local| !path.is_within(local));
    let parents = files.iter().filter_map(|file| file.path.parent());
    // Also without secrets: the cleanup has to prove that the files are gone, and a missing directory does not.
    let private = paths.secret_files(&job.spec);
    let private = private.iter().filter_map(RemotePath::parent);
    let tasks = job.spec.array.as_ref().map(|_| state_dir.join("tasks")).transpose()?;
    let make_dirs: BTreeSet<RemotePath> = parents
        .chain(private)
        .chain(tasks)
        .chain([paths.log_root, paths.results_root, state_dir.clone()])
        .collect();
    Ok(Submission {
        key: attempt.key(job.id),
        state_dir,
        files,
        script_path: paths.script,
        make_dirs: make_dirs.into_iter().collect(),
        results_dir: paths.results,
        inputs: job.spec.required_paths.iter().filter(is_checked).cloned().collect(),
        base_dir: attempt.job_dir.clone(),
        send: attempt.fence.newest,
        cleared: attempt.fence.cleared,
    })
}

/// The parameters of the attempt's tasks.
fn task_list(array: &JobArray, attempt: &Attempt) -> Result<String, StagingError> {
    let mut list = String::new();
    for task in attempt.tasks.iter() {
        let parameters = array.parameters(task);
        let json = serde_json::to_vec(&parameters)?;
        let variables = parameters.into_iter().filter_map(|(key, value)| Some((key, value_text(value)?)));
        list.push_str(&task_line(task.saturating_sub(attempt.base), &json, variables));
    }
    Ok(list)
}

/// The files that TAO's entry point reads.
fn tao_files(
    paths: &JobPaths,
    spec: &JobSpec,
    specs: &Value,
    open: &BTreeMap<EnvKey, String>,
    secrets: &Secrets,
) -> Result<Vec<StagedFile>, StagingError> {
    let mut specs = specs.clone();
    if let Value::Object(fields) = &mut specs {
        fields.insert("results_dir".to_owned(), json!(paths.results.as_str()));
    }
    let plain = open.iter().map(|(key, value)| (key.to_string(), value.as_str()));
    let secret = secrets.env.iter().map(|(key, value)| (key.to_string(), value.expose_secret()));
    let env: Map<String, Value> = plain.chain(secret).map(|(key, value)| (key, json!(value))).collect();
    let mut cloud = spec.cloud_plain.clone();
    cloud.extend(secrets.cloud_metadata.clone());
    Ok(vec![
        StagedFile { path: paths.specs.clone(), mode: SHARED, bytes: serde_json::to_vec(&specs)? },
        StagedFile { path: paths.env_json.clone(), mode: PRIVATE, bytes: serde_json::to_vec(&env)? },
        StagedFile { path: paths.meta.clone(), mode: PRIVATE, bytes: serde_json::to_vec(&cloud)? },
    ])
}

/// The limits of Slurm and of the job itself: no more than what is left of its total run time, with the same margin between them.
fn time_limits(job: &Job) -> (WallTime, RunTime) {
    let Resources { time, soft_timeout, .. } = job.spec.resources;
    let Some(left) = job.spec.restart.seconds_left(job.run.ran_before) else { return (time, soft_timeout) };
    let margin = time.seconds().saturating_sub(u64::from(soft_timeout.seconds()));
    let minutes = (u64::from(left) + margin).div_ceil(60).max(1);
    let wall_time = u32::try_from(minutes).ok().and_then(WallTime::from_minutes).unwrap_or(time);
    let run_time = RunTime::from_seconds(left.max(1)).unwrap_or(soft_timeout);
    (wall_time.min(time), run_time.min(soft_timeout))
}

/// What the batch script has to know to queue the next attempt.
fn chain(job: &Job, attempt: &Attempt, script: &RemotePath) -> Result<Option<Chain>, StagingError> {
    let restart = &job.spec.restart;
    if !restart.prequeue {
        return Ok(None);
    }
    Ok(Some(Chain {
        no: attempt.no.get(),
        first_name: Origin { job: job.id, no: AttemptNo::FIRST }.name().parse()?,
        script_path: script.clone(),
        used_seconds: job.run.ran_before,
        most_seconds: restart.max_total_seconds.unwrap_or(u32::MAX),
        causes: restart.planned_ends(),
    }))
}

fn directives(job: &Job, attempt: &Attempt, cluster: &Cluster) -> Directives {
    let spec = &job.spec;
    let resources = spec.resources;
    let mut options = spec.options.clone();
    // A job of an earlier release has no account of its own.
    options.account = options.account.or_else(|| cluster.account.clone());
    let moment = |moment: Option<Moment>| moment?.for_sbatch(job.created_at, attempt.intended_at);
    Directives {
        job_name: attempt.token.clone(),
        array: spec.array.as_ref().map(|_| (attempt.tasks.less(attempt.base), job.max_parallel(attempt))),
        partitions: spec.partitions.clone(),
        nodes: resources.nodes,
        tasks_per_node: resources.tasks_per_node,
        gpus_per_node: resources.gpus_per_node,
        gpu_request: cluster.submit.gpu_request,
        cpus_per_task: resources.cpus_per_task,
        time: time_limits(job).0,
        requeue: spec.use_requeue,
        exclusive: resources.exclusive,
        all_memory: false,
        exclude: attempt.excluded.clone(),
        begin: moment(spec.begin),
        deadline: spec.deadline.map(|_| moment(spec.deadline).unwrap_or_else(SbatchTime::next_second)),
        options,
        mail: cluster.batch.mail_user.clone(),
        trace: spec.trace.clone(),
        login_environment: cluster.batch.sbatch_export == SbatchExport::All,
        warning_seconds: cluster.batch.warning_seconds,
    }
}

#[cfg(test)]
mod tests;
