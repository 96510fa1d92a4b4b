//! The secrets of a request, separated from the rest: environment variables and TAO's workspace details.

use std::collections::{BTreeMap, BTreeSet};

use secrecy::SecretString;
use serde_json::{Map, Value};
use slurm::{CudaVersion, EnvKey};

use crate::{
    request::{
        secret::is_secret_key,
        uri::{Reference, reference},
        variable::{MAX_ENV_VALUE, reserved_variable},
    },
    violation::{Faults, pointer},
};

/// The variable that selects another CUDA than the image's own.
pub(crate) const CUDA_OVERRIDE: &str = "CUDA_OVERRIDE_VERSION";
const MAX_ENV: usize = 1000;

type Environment = (BTreeMap<EnvKey, String>, BTreeMap<EnvKey, SecretString>);

/// The variables of a request, and those of them that are secret. Each list comes with its place in the request.
pub(super) fn environment(
    open: &(String, &BTreeMap<String, String>),
    sealed: &(String, &BTreeMap<String, String>),
    faults: &mut Faults,
) -> Environment {
    let (mut env, mut secret) = (BTreeMap::new(), BTreeMap::new());
    let [open_name, sealed_name] = [&open.0, &sealed.0].map(|at| at.rsplit('/').next().unwrap_or_default());
    if open.1.len() + sealed.1.len() > MAX_ENV {
        let detail = format_args!("must have at most {MAX_ENV} variables, with those of {sealed_name}");
        faults.add(open.0.clone(), "too_many", detail);
        return (env, secret);
    }
    let all = [(open, false), (sealed, true)];
    let all = all
        .into_iter()
        .flat_map(|((parent, list), sealed)| list.iter().map(move |pair| (parent, sealed, pair)));
    for (parent, sealed, (key, value)) in all {
        let at = pointer(parent, key);
        if value.len() > MAX_ENV_VALUE || value.contains('\0') {
            faults.add(at, "invalid", format_args!("must be at most {MAX_ENV_VALUE} bytes without NUL"));
            continue;
        }
        let Some(key) = faults.parse::<EnvKey>(&at, key) else { continue };
        if key.as_str() == CUDA_OVERRIDE
            && (sealed || !(value.is_empty() || value.parse::<CudaVersion>().is_ok()))
        {
            faults.add(at, "invalid", format_args!("must be a CUDA version such as 12.8, in {open_name}"));
            continue;
        }
        if let Some(detail) = reserved_variable(&key) {
            faults.add(at, "reserved", detail);
        } else if secret.contains_key(&key) || env.contains_key(&key) {
            faults.add(at, "contradiction", format_args!("is also in {open_name}; give it once"));
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

/// The only details that are known to be harmless. The depth of access keys varies by cloud, so everything else counts
/// as secret.
const PLAIN: [&str; 3] = ["slurm_user", "slurm_hostname", "base_results_dir"];

/// TAO's workspace details.
pub(super) struct Cloud {
    pub(super) plain: Map<String, Value>,
    pub(super) secret: Map<String, Value>,
    pub(super) secret_keys: BTreeSet<String>,
}

impl Cloud {
    pub(super) fn split(details: Map<String, Value>) -> Self {
        let (plain, secret): (Map<_, _>, Map<_, _>) =
            details.into_iter().partition(|(key, value)| PLAIN.contains(&key.as_str()) && is_text(value));
        let secret_keys = secret.keys().cloned().collect();
        Self { plain, secret, secret_keys }
    }
}

/// A text or a list of texts: it has no room for a nested credential.
fn is_text(value: &Value) -> bool {
    match value {
        Value::String(_) => true,
        Value::Array(items) => items.iter().all(Value::is_string),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Object(_) => false,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn only_details_known_to_be_harmless_are_plain() {
        let details = json!({
            "slurm_user": "tao", "slurm_hostname": ["login1"], "base_results_dir": {"token": "hunter2"},
            "aws": {"bucket": {"secret_key": "hunter3"}},
        });
        let Value::Object(details) = details else { unreachable!() };
        let cloud = Cloud::split(details);
        assert_eq!(Value::Object(cloud.plain), json!({"slurm_user": "tao", "slurm_hostname": ["login1"]}));
        assert_eq!(
            cloud.secret_keys.iter().map(String::as_str).collect::<Vec<_>>(),
            ["aws", "base_results_dir"]
        );
        assert_eq!(cloud.secret.len(), 2);
    }
}
