//! Retrying a job that has ended. Its secrets were erased, so the request has to supply them.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::{Map, Value};
use slurm::EnvKey;
use utoipa::ToSchema;

use crate::{
    job::{
        status::Status,
        stored::{DesiredState, Job},
        task_selection::TaskSelection,
    },
    request::{secret::Secrets, spec::JobSpec, variable::MAX_ENV_VALUE},
    violation::{Faults, Violation, pointer},
};

/// The secrets of a job that is retried.
#[derive(Debug, Clone, Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct RetryRequest {
    /// Of a job with an array: the tasks, as `failed`, `canceled`, or numbers such as `3,7-9`. Default: all that are not done.
    #[schema(value_type = Option<String>, example = "failed")]
    pub tasks: Option<TaskSelection>,
    /// The values of all secret variables, including those that were given in `docker_env_vars`.
    #[serde(default)]
    #[schema(write_only)]
    pub secret_env_vars: BTreeMap<String, String>,
    /// TAO's workspace details and credentials, if the job had any.
    #[serde(default)]
    #[schema(value_type = Object, write_only)]
    pub cloud_metadata: Map<String, Value>,
}

impl RetryRequest {
    /// The secrets that `spec` needs. Every name must be given, and no other.
    pub fn secrets_for(self, spec: &JobSpec) -> Result<Secrets, Vec<Violation>> {
        const ERASED: &str = "is required: the secret value was erased when the job ended";
        let mut faults = Faults::default();
        let mut given = self.secret_env_vars;
        let mut env: BTreeMap<EnvKey, secrecy::SecretString> = BTreeMap::new();
        for key in &spec.secret_env {
            let at = format!("/secret_env_vars/{key}");
            match given.remove(key.as_str()) {
                Some(value) if value.len() > MAX_ENV_VALUE || value.contains('\0') => {
                    let detail = format_args!("must be at most {MAX_ENV_VALUE} bytes without NUL");
                    faults.add(at, "invalid", detail);
                }
                Some(value) => {
                    env.insert(key.clone(), value.into());
                }
                None => faults.add(at, "required", ERASED),
            }
        }
        for key in spec.cloud_secret_keys.iter().filter(|key| !self.cloud_metadata.contains_key(*key)) {
            faults.add(pointer("/cloud_metadata", key), "required", ERASED);
        }
        for key in given.keys() {
            let at = pointer("/secret_env_vars", key);
            faults.add(at, "unknown_field", "the job has no secret variable of this name");
        }
        if !faults.0.is_empty() {
            return Err(faults.0);
        }
        Ok(Secrets { env, cloud_metadata: self.cloud_metadata })
    }
}

impl Job {
    /// Whether the job's owner may retry it.
    pub fn can_be_retried(&self) -> bool {
        matches!(self.status, Status::Error | Status::Canceled) && self.desired != DesiredState::Delete
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixtures::command_job;

    fn spec_with(keys: &[&str]) -> JobSpec {
        let mut spec = command_job().spec;
        spec.secret_env = keys.iter().map(|key| key.parse().unwrap()).collect();
        spec
    }

    fn request(keys: &[&str]) -> RetryRequest {
        let secret_env_vars = keys.iter().map(|key| ((*key).to_owned(), "v".to_owned())).collect();
        RetryRequest { secret_env_vars, ..RetryRequest::default() }
    }

    #[test]
    fn the_same_names_are_required() {
        let secrets = request(&["HF_TOKEN"]).secrets_for(&spec_with(&["HF_TOKEN"])).unwrap();
        assert_eq!(secrets.env.len(), 1);
        assert!(request(&[]).secrets_for(&spec_with(&[])).unwrap().is_empty());
    }

    #[test]
    fn missing_and_unknown_names_are_reported() {
        let faults = request(&["OTHER"]).secrets_for(&spec_with(&["HF_TOKEN"])).unwrap_err();
        let at: Vec<_> = faults.iter().map(|fault| fault.pointer.as_str()).collect();
        assert_eq!(at, ["/secret_env_vars/HF_TOKEN", "/secret_env_vars/OTHER"]);
    }

    #[test]
    fn secret_cloud_metadata_is_required() {
        let mut spec = spec_with(&[]);
        spec.cloud_secret_keys.insert("aws".to_owned());
        let faults = request(&[]).secrets_for(&spec).unwrap_err();
        assert_eq!(faults[0].pointer, "/cloud_metadata/aws");
        let mut given = request(&[]);
        given.cloud_metadata.insert("aws".to_owned(), serde_json::json!({"access_key": "k"}));
        assert!(given.secrets_for(&spec).is_ok());
    }
}
