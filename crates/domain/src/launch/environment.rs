//! The plain environment variables of a job.

use std::collections::BTreeMap;

use slurm::{EnvKey, InvalidName};

use crate::{
    job::{attempt::Attempt, paths::JobPaths, stored::Job},
    request::{cosmos, spec::Work},
};

/// TAO's variables of every job, overridden by the caller's.
pub(super) fn open(
    job: &Job,
    attempt: &Attempt,
    paths: &JobPaths,
) -> Result<BTreeMap<EnvKey, String>, InvalidName> {
    let spec = &job.spec;
    let mut env = BTreeMap::new();
    let mut set = |key: &str, value: String| {
        env.insert(key.parse()?, value);
        Ok::<(), InvalidName>(())
    };
    set("TAO_API_JOB_ID", job.id.to_string())?;
    // The container appends the job's id.
    set("TAO_API_RESULTS_DIR", paths.results_root.to_string())?;
    // With this the container writes its status to files instead of calling a service.
    set("CLOUD_BASED", "False".to_owned())?;
    set("PYTHONNOUSERSITE", "1".to_owned())?;
    set("PYTHONDONTWRITEBYTECODE", "1".to_owned())?;
    set("NCCL_DEBUG", "INFO".to_owned())?;
    set("LOGLEVEL", "INFO".to_owned())?;
    let given = |name: &str| spec.env.keys().chain(&spec.secret_env).any(|key| key.as_str() == name);
    if !given("HUGGINGFACE_HUB_CACHE") {
        set("HF_HOME", attempt.job_dir.join(".cache/huggingface")?.to_string())?;
    }
    if let Work::Tao { network_arch, action, .. } = &spec.work {
        set("TAO_EXECUTION_BACKEND", "slurm".to_owned())?;
        set("ORCHESTRATION_API_NETWORK", network_arch.to_string())?;
        set("ORCHESTRATION_API_ACTION", action.to_string())?;
    }
    env.extend(cosmos::defaults(spec, &attempt.job_dir)?);
    env.extend(spec.env.iter().map(|(key, value)| (key.clone(), value.clone())));
    Ok(env)
}
