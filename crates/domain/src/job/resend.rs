//! Sending a job again that has ended: what was secret of it is gone, and has to come with the request.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::{Map, Value};
use slurm::EnvKey;
use utoipa::ToSchema;

use crate::{
    job::{
        status::Status,
        stored::{DesiredState, Job},
    },
    request::{secret::Secrets, spec::JobSpec},
    violation::Violation,
};

/// The secrets of a job that is sent again.
#[derive(Debug, Clone, Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields, default)]
pub struct RetryRequest {
    /// The values of all variables that were secret, also those that came in `docker_env_vars`.
    #[schema(write_only)]
    pub secret_env_vars: BTreeMap<String, String>,
    /// TAO's workspace details and credentials, if the job had any.
    #[schema(value_type = Object, write_only)]
    pub cloud_metadata: Map<String, Value>,
}

impl RetryRequest {
    /// The secrets that `spec` needs: exactly those names, none missing and none new.
    pub fn secrets_for(self, spec: &JobSpec) -> Result<Secrets, Vec<Violation>> {
        let mut faults = Vec::new();
        let mut given = self.secret_env_vars;
        let mut env: BTreeMap<EnvKey, secrecy::SecretString> = BTreeMap::new();
        for key in &spec.secret_env {
            let at = format!("/secret_env_vars/{key}");
            match given.remove(key.as_str()) {
                Some(value) if value.len() > crate::request::spec::MAX_ENV_VALUE || value.contains('\0') => {
                    faults.push(Violation::new(at, "invalid", "is too long, or has a NUL"));
                }
                Some(value) => {
                    env.insert(key.clone(), value.into());
                }
                None => faults.push(Violation::new(
                    at,
                    "required",
                    "was secret and was erased when the job ended; send its value again",
                )),
            }
        }
        for key in spec.cloud_secret_keys.iter().filter(|key| !self.cloud_metadata.contains_key(*key)) {
            let at = format!("/cloud_metadata/{}", key.replace('~', "~0").replace('/', "~1"));
            let detail = "was secret and was erased when the job ended; send it again";
            faults.push(Violation::new(at, "required", detail));
        }
        for key in given.keys() {
            let at = format!("/secret_env_vars/{}", key.replace('~', "~0").replace('/', "~1"));
            faults.push(Violation::new(at, "unknown_field", "the job has no secret variable of this name"));
        }
        if faults.is_empty() { Ok(Secrets { env, cloud_metadata: self.cloud_metadata }) } else { Err(faults) }
    }
}

impl Job {
    /// Whether the job has ended in a way that leaves room for another try.
    pub fn may_be_sent_again(&self) -> bool {
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
    fn the_same_names_are_needed_again() {
        let secrets = request(&["HF_TOKEN"]).secrets_for(&spec_with(&["HF_TOKEN"])).unwrap();
        assert_eq!(secrets.env.len(), 1);
        assert!(request(&[]).secrets_for(&spec_with(&[])).unwrap().is_empty());
    }

    #[test]
    fn a_missing_one_and_a_new_one_are_named() {
        let faults = request(&["OTHER"]).secrets_for(&spec_with(&["HF_TOKEN"])).unwrap_err();
        let at: Vec<_> = faults.iter().map(|fault| fault.pointer.as_str()).collect();
        assert_eq!(at, ["/secret_env_vars/HF_TOKEN", "/secret_env_vars/OTHER"]);
    }

    #[test]
    fn cloud_metadata_that_was_secret_is_needed_again() {
        let mut spec = spec_with(&[]);
        spec.cloud_secret_keys.insert("aws".to_owned());
        let faults = request(&[]).secrets_for(&spec).unwrap_err();
        assert_eq!(faults[0].pointer, "/cloud_metadata/aws");
        let mut given = request(&[]);
        given.cloud_metadata.insert("aws".to_owned(), serde_json::json!({"access_key": "k"}));
        assert!(given.secrets_for(&spec).is_ok());
    }
}
