//! Retrying a job that has ended. Its secrets were erased, so the request has to supply them.

use std::collections::{BTreeMap, BTreeSet};

use secrecy::SecretString;
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
    request::{component::JobComponent, secret::Secrets, spec::JobSpec, variable::MAX_ENV_VALUE},
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
    /// The values of the secret variables that only one step or service has, by its name.
    #[serde(default)]
    #[schema(write_only)]
    pub components: BTreeMap<String, BTreeMap<String, String>>,
    /// TAO's workspace details and credentials, if the job had any.
    #[serde(default)]
    #[schema(value_type = Object, write_only)]
    pub cloud_metadata: Map<String, Value>,
}

const ERASED: &str = "is required: the secret value was erased when the job ended";

impl RetryRequest {
    /// The secrets that `spec` needs. Every name must be given, and no other.
    pub fn secrets_for(self, spec: &JobSpec) -> Result<Secrets, Vec<Violation>> {
        let mut faults = Faults::default();
        let env = values(&spec.secret_env, self.secret_env_vars, "/secret_env_vars", &mut faults);
        let mut given = self.components;
        let mut components = BTreeMap::new();
        for JobComponent { name, own, .. } in spec.components() {
            let at = format!("/components/{name}");
            let own =
                values(&own.secret_env, given.remove(name.as_str()).unwrap_or_default(), &at, &mut faults);
            if !own.is_empty() {
                components.insert(name.clone(), own);
            }
        }
        for name in given.keys() {
            let at = pointer("/components", name);
            faults.add(at, "unknown_field", "the job has no step or service of this name");
        }
        for key in spec.cloud_secret_keys.iter().filter(|key| !self.cloud_metadata.contains_key(*key)) {
            faults.add(pointer("/cloud_metadata", key), "required", ERASED);
        }
        if !faults.0.is_empty() {
            return Err(faults.0);
        }
        Ok(Secrets { env, components, cloud_metadata: self.cloud_metadata })
    }
}

/// The values of variables. `parent`: their place in the request.
fn values(
    names: &BTreeSet<EnvKey>,
    mut given: BTreeMap<String, String>,
    parent: &str,
    faults: &mut Faults,
) -> BTreeMap<EnvKey, SecretString> {
    let mut found = BTreeMap::new();
    for key in names {
        let at = format!("{parent}/{key}");
        match given.remove(key.as_str()) {
            Some(value) if value.len() > MAX_ENV_VALUE || value.contains('\0') => {
                let detail = format_args!("must be at most {MAX_ENV_VALUE} bytes without NUL");
                faults.add(at, "invalid", detail);
            }
            Some(value) => {
                found.insert(key.clone(), value.into());
            }
            None => faults.add(at, "required", ERASED),
        }
    }
    for key in given.keys() {
        faults.add(pointer(parent, key), "unknown_field", "the job has no secret variable of this name");
    }
    found
}

impl Job {
    /// Whether the job's owner may retry it.
    pub fn can_be_retried(&self) -> bool {
        matches!(self.status, Status::Error | Status::Canceled) && self.desired != DesiredState::Delete
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::{fixtures::command_job, request::spec::Work};

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
    fn each_component_has_secrets_of_its_own() {
        let component = |name: &str| {
            let stored =
                json!({"name": name, "text": "true", "first_node": 0, "nodes": 1, "secret_env": ["KEY"]});
            serde_json::from_value(stored).unwrap()
        };
        let mut spec = spec_with(&[]);
        spec.work = Work::Components { list: vec![component("model"), component("judge")] };
        let asked = |text: &str| serde_json::from_str::<RetryRequest>(text).unwrap().secrets_for(&spec);
        let secrets = asked(r#"{"components": {"model": {"KEY": "a"}, "judge": {"KEY": "b"}}}"#).unwrap();
        assert_eq!(secrets.components.len(), 2);
        let faults = asked(r#"{"components": {"model": {"KEY": "a"}, "other": {}}}"#).unwrap_err();
        let at: Vec<_> = faults.iter().map(|fault| fault.pointer.as_str()).collect();
        assert_eq!(at, ["/components/judge/KEY", "/components/other"]);
    }

    #[test]
    fn secret_cloud_metadata_is_required() {
        let mut spec = spec_with(&[]);
        spec.cloud_secret_keys.insert("aws".to_owned());
        let faults = request(&[]).secrets_for(&spec).unwrap_err();
        assert_eq!(faults[0].pointer, "/cloud_metadata/aws");
        let mut given = request(&[]);
        given.cloud_metadata.insert("aws".to_owned(), json!({"access_key": "k"}));
        assert!(given.secrets_for(&spec).is_ok());
    }
}
