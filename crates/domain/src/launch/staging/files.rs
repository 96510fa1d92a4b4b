//! The files that TAO's entry point reads.

use std::collections::BTreeMap;

use remote::StagedFile;
use secrecy::ExposeSecret;
use serde_json::{Map, Value, json};
use slurm::EnvKey;

use super::{PRIVATE, SHARED, StagingError};
use crate::{
    job::paths::JobPaths,
    request::{secret::Secrets, spec::JobSpec},
};

pub(super) fn tao_files(
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
