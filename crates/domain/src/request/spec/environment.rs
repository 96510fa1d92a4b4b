//! The variables of a job, parted into what may be seen and what may not.

use std::collections::BTreeMap;

use secrecy::SecretString;
use slurm::{CudaVersion, EnvKey};

use super::faults::Faults;
use crate::{
    launch::staging::CUDA_OVERRIDE,
    request::{
        body::JobRequest,
        secret::is_secret_key,
        uri::{Reference, reference},
    },
    violation::pointer,
};

/// TAO's own bound on a name or value is 500 characters; ours leaves room for long tokens and lists.
pub(crate) const MAX_ENV_VALUE: usize = 32 * 1024;
const MAX_ENV: usize = 1000;

type Environment = (BTreeMap<EnvKey, String>, BTreeMap<EnvKey, SecretString>);

pub(super) fn environment(request: &JobRequest, faults: &mut Faults) -> Environment {
    let (mut env, mut secret) = (BTreeMap::new(), BTreeMap::new());
    if request.docker_env_vars.len() + request.secret_env_vars.len() > MAX_ENV {
        faults.add("/docker_env_vars", "too_many", format_args!("at most {MAX_ENV} variables"));
        return (env, secret);
    }
    let open = request.docker_env_vars.iter().map(|pair| ("/docker_env_vars", false, pair));
    let sealed = request.secret_env_vars.iter().map(|pair| ("/secret_env_vars", true, pair));
    for (parent, sealed, (key, value)) in open.chain(sealed) {
        let at = pointer(parent, key);
        if value.len() > MAX_ENV_VALUE || value.contains('\0') {
            faults.add(at, "invalid", format_args!("must be at most {MAX_ENV_VALUE} bytes without NUL"));
            continue;
        }
        let Some(key) = faults.parse::<EnvKey>(&at, key) else { continue };
        if key.as_str() == CUDA_OVERRIDE
            && (sealed || !(value.is_empty() || value.parse::<CudaVersion>().is_ok()))
        {
            faults.add(at, "invalid", "must be a CUDA version such as 12.8, in docker_env_vars");
            continue;
        }
        // Slurm and the batch script rely on theirs; a job that redefines them would be lied about.
        if key.as_str().starts_with("SLURM_") || key.as_str() == "BASH_ENV" {
            faults.add(at, "reserved", "is reserved: SLURM_* and BASH_ENV cannot be set by a job");
        } else if secret.contains_key(&key) || env.contains_key(&key) {
            faults.add(at, "contradiction", "is in docker_env_vars as well; give it once");
        } else if sealed {
            secret.insert(key, value.clone().into());
        } else {
            let value = match reference(value) {
                Reference::Shared(Ok(path)) => path,
                Reference::Shared(Err(error)) => {
                    faults.add(at, "invalid", error);
                    continue;
                }
                Reference::Absolute
                | Reference::Local { .. }
                | Reference::Remote { .. }
                | Reference::Bare => value.clone(),
            };
            if is_secret_key(&key) {
                secret.insert(key, value.into());
            } else {
                env.insert(key, value);
            }
        }
    }
    (env, secret)
}
