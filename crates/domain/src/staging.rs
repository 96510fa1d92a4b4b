//! A job's files and batch script, as one submission.

use std::collections::{BTreeMap, BTreeSet};

use secrecy::ExposeSecret;
use serde_json::{Map, Value, json};
use slurm::{
    BatchScript, Directives, EnvKey, InvalidName, Launch, RemotePath, ScriptError, StagedFile, Submission,
};

use crate::{
    attempt::Attempt,
    cluster::Cluster,
    job::Job,
    paths::JobPaths,
    secret::Secrets,
    spec::{JobSpec, Work},
};

/// Why a job cannot be put into files: always a defect of ours, since the request was validated.
#[derive(Debug, thiserror::Error)]
pub enum StagingError {
    #[error("a path of the job is not valid")]
    Path(#[from] InvalidName),
    #[error("the batch script cannot be written")]
    Script(#[from] ScriptError),
    #[error("a file of the job cannot be written as JSON")]
    Json(#[from] serde_json::Error),
}

const PRIVATE: u32 = 0o600;
const SHARED: u32 = 0o644;

/// Everything that one remote command needs to stage and submit this attempt, and the script it submits.
pub fn plan_submission(
    job: &Job,
    attempt: &Attempt,
    cluster: &Cluster,
    secrets: &Secrets,
    retake: bool,
) -> Result<Submission, StagingError> {
    let paths = JobPaths::new(&attempt.job_dir, job.id)?;
    let state_dir = paths.state(attempt)?;
    let open = open_environment(job, attempt, &paths)?;
    let (launch, mut files) = match &job.spec.work {
        Work::Tao { network_arch, action, specs } => {
            let argv = tao_command(job, &paths, network_arch.as_str(), action.as_str());
            let launch = container(&job.spec, attempt, &open, secrets, argv);
            (launch, tao_files(&paths, &job.spec, specs, &open, secrets)?)
        }
        Work::Command { text } => {
            let file = state_dir.join("command.sh")?;
            let argv = ["bash", "-euo", "pipefail", file.as_str()].map(str::to_owned).to_vec();
            let staged = StagedFile { path: file, mode: SHARED, bytes: text.clone().into_bytes() };
            (container(&job.spec, attempt, &open, secrets, argv), vec![staged])
        }
    };
    let env_file = (!secrets.env.is_empty()).then(|| paths.env_shell.clone());
    if let Some(path) = &env_file {
        let secret = secrets.env.iter().map(|(key, value)| (key, value.expose_secret()));
        let bytes = slurm::script::env_file(secret)?.into_bytes();
        files.push(StagedFile { path: path.clone(), mode: PRIVATE, bytes });
    }
    let script = script(&job.spec, attempt, cluster, &paths, &state_dir, open, env_file, launch);
    files.push(StagedFile { path: paths.script.clone(), mode: SHARED, bytes: script.render()?.into_bytes() });
    let parents = files.iter().filter_map(|file| file.path.parent());
    // Also without a secret: at the end all of them have to be surely gone, which a missing directory does not say.
    let private = paths.secret_files();
    let private = private.iter().filter_map(RemotePath::parent);
    let make_dirs: BTreeSet<RemotePath> =
        parents.chain(private).chain([paths.log_root, paths.results, state_dir.clone()]).collect();
    Ok(Submission {
        key: attempt.token.to_string(),
        job_name: attempt.token.clone(),
        state_dir,
        files,
        script_path: paths.script,
        make_dirs: make_dirs.into_iter().collect(),
        inputs: job.spec.required_paths.clone(),
        base_dir: attempt.job_dir.clone(),
        retake,
    })
}

/// The environment that is no secret: what TAO sets for every job, then what the caller asked for.
fn open_environment(
    job: &Job,
    attempt: &Attempt,
    paths: &JobPaths,
) -> Result<BTreeMap<EnvKey, String>, InvalidName> {
    let caches = attempt.job_dir.join(".cache/huggingface")?;
    let ours = [
        ("TAO_API_JOB_ID", job.id.to_string()),
        // The container appends the job's id itself.
        ("TAO_API_RESULTS_DIR", paths.results_root.to_string()),
        // The container then writes its status to files instead of calling a service back.
        ("CLOUD_BASED", "False".to_owned()),
        ("HF_HOME", caches.to_string()),
        ("PYTHONNOUSERSITE", "1".to_owned()),
        ("PYTHONDONTWRITEBYTECODE", "1".to_owned()),
        ("NCCL_DEBUG", "INFO".to_owned()),
        ("LOGLEVEL", "INFO".to_owned()),
    ];
    let mut env = BTreeMap::new();
    for (key, value) in ours {
        env.insert(key.parse()?, value);
    }
    env.extend(job.spec.env.iter().map(|(key, value)| (key.clone(), value.clone())));
    Ok(env)
}

/// TAO's container entry point, with the arguments that its own parser takes.
fn tao_command(job: &Job, paths: &JobPaths, network_arch: &str, action: &str) -> Vec<String> {
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

fn container(
    spec: &JobSpec,
    attempt: &Attempt,
    open: &BTreeMap<EnvKey, String>,
    secrets: &Secrets,
    argv: Vec<String>,
) -> Launch {
    let launched = attempt.image.as_ref().map(|launched| &launched.image);
    let Some(image) = launched.or(spec.image.as_ref()) else { return Launch::Host { argv } };
    let mut mounts: Vec<String> = spec.mounts.iter().map(ToString::to_string).collect();
    // The job's own files lie below the base directory: without it the container finds none of them.
    let base = attempt.job_dir.as_str();
    if !mounts.iter().any(|mount| base == mount || base.starts_with(&format!("{mount}/"))) {
        mounts.push(base.to_owned());
    }
    let forward_env = open.keys().chain(secrets.env.keys()).cloned().collect();
    Launch::Container { image: image.pyxis(), mounts, forward_env, argv }
}

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

#[expect(clippy::too_many_arguments, reason = "one argument a part of the script, each used once")]
fn script(
    spec: &JobSpec,
    attempt: &Attempt,
    cluster: &Cluster,
    paths: &JobPaths,
    state_dir: &RemotePath,
    open: BTreeMap<EnvKey, String>,
    env_file: Option<RemotePath>,
    launch: Launch,
) -> BatchScript {
    let resources = spec.resources;
    BatchScript {
        directives: Directives {
            job_name: attempt.token.clone(),
            partitions: spec.partitions.clone(),
            account: cluster.account.clone(),
            nodes: resources.nodes,
            gpus_per_node: resources.gpus_per_node,
            cpus_per_task: resources.cpus_per_task,
            time: resources.time,
            requeue: spec.use_requeue,
            exclusive: resources.exclusive,
            exclude: attempt.excluded.clone(),
        },
        state_dir: state_dir.clone(),
        log_root: paths.log_root.clone(),
        env_file,
        exports: open.into_iter().collect(),
        soft_timeout: Some(resources.soft_timeout),
        launch,
    }
}
