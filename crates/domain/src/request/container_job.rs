//! Jobs in TAO's own form: the body that its services post to the microservice in a container.

use std::collections::{BTreeMap, HashSet};

use serde::Deserialize;
use serde_json::{Map, Value};
use utoipa::ToSchema;
use uuid::Uuid;

use crate::{
    image::ImageRef,
    request::{
        body::JobRequest,
        cosmos,
        options_body::ResourcesRequest,
        uri::{Reference, reference},
    },
    violation::Violation,
};

/// A job in the form that TAO's services post.
#[derive(Debug, Clone, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ContainerJob {
    /// TAO's network architecture, such as `classification_pyt`. The configuration maps it to an image.
    pub neural_network_name: String,
    /// TAO's action, such as `train`.
    pub action_name: String,
    /// The experiment's specification. Its `results_dir` identifies the job in status requests.
    #[schema(value_type = Option<Object>)]
    pub specs: Option<Map<String, Value>>,
    /// TAO's workspace details and credentials. `slurm_user` and `slurm_hostname` select a configured cluster. Sealed at
    /// rest, and never returned.
    #[schema(value_type = Option<Object>, write_only)]
    pub cloud_metadata: Option<Map<String, Value>>,
    /// Environment variables of the job. Values with a secret-looking key are sealed at rest and never returned.
    #[schema(value_type = Option<BTreeMap<String, Option<String>>>)]
    pub docker_env_vars: Option<BTreeMap<String, Option<String>>>,
    /// The caller's own UUID for the job. Default: a new one.
    pub job_id: Option<Uuid>,
    /// The number of nodes. Default: 1.
    pub statefulset_replicas: Option<u32>,
}

/// The images of TAO's networks, since TAO's body does not name an image.
#[derive(Debug, Clone, Default)]
pub struct ContainerImages {
    pub by_network: BTreeMap<String, ImageRef>,
    /// The image of all other networks.
    pub default: Option<ImageRef>,
}

/// Variables that TAO sets for its own container. They are dropped: with them the job would call services back, or put
/// its results in the wrong place.
const OURS: [&str; 4] = ["CLOUD_BASED", "TAO_API_RESULTS_DIR", "TAO_API_JOB_ID", "TAO_EXECUTION_BACKEND"];

impl ContainerJob {
    /// Converts the job to a request of this service.
    pub fn into_request(self, images: &ContainerImages) -> Result<JobRequest, Violation> {
        let network = self.neural_network_name;
        let image = images.by_network.get(&network).or(images.default.as_ref()).ok_or_else(|| {
            Violation::new(
                "/neural_network_name",
                "no_image",
                "has no configured image; the operator of this service can set tao.images, or tao.default_image for all \
                 networks",
            )
        })?;
        let specs = self.specs.unwrap_or_default();
        // The roles of such a training define their own nodes and GPUs.
        let gpus_per_node = if cosmos::is_training(&network, &self.action_name) {
            None
        } else {
            gpus_per_node(&specs, &self.action_name)
        };
        let env = self.docker_env_vars.unwrap_or_default();
        let given = env.into_iter().filter_map(|(key, value)| Some((key, value?)));
        Ok(JobRequest {
            id: self.job_id,
            image: Some(image.to_string()),
            network_arch: Some(network),
            action: Some(self.action_name),
            specs: Some(specs),
            cloud_metadata: self.cloud_metadata.unwrap_or_default(),
            docker_env_vars: given.filter(|(key, _)| !OURS.contains(&key.as_str())).collect(),
            resources: ResourcesRequest {
                num_nodes: self.statefulset_replicas.filter(|replicas| *replicas > 0),
                gpus_per_node,
                ..ResourcesRequest::default()
            },
            ..JobRequest::default()
        })
    }
}

const COUNTS: [&str; 2] = ["gpus", "num_gpus"];
const LISTS: [&str; 2] = ["gpu_ids", "gpu_id"];

/// The number of GPUs that a specification names: TAO's body has no field for it, and the program in the container starts
/// one process per GPU. Of several numbers the highest counts.
fn gpus_per_node(specs: &Map<String, Value>, action: &str) -> Option<u32> {
    let section = specs.get(action).and_then(Value::as_object);
    let system = section.and_then(|section| section.get("system")).and_then(Value::as_object);
    let places = [Some(specs), section, system];
    places.into_iter().flatten().filter_map(gpus_in).max()
}

fn gpus_in(place: &Map<String, Value>) -> Option<u32> {
    let counts = COUNTS.iter().filter_map(|key| place.get(*key)).filter_map(Value::as_u64);
    let lists = LISTS.iter().filter_map(|key| place.get(*key)).map(ids);
    let most = counts.chain(lists).filter(|number| *number > 0).max()?;
    // Too large a number is rejected later, with its own field.
    Some(u32::try_from(most).unwrap_or(u32::MAX))
}

/// The number of GPUs in a list; a single number names one GPU.
fn ids(value: &Value) -> u64 {
    match value {
        Value::Array(ids) => {
            let distinct: HashSet<String> = ids.iter().map(ToString::to_string).collect();
            distinct.len() as u64
        }
        Value::Number(_) => 1,
        Value::Null | Value::Bool(_) | Value::String(_) | Value::Object(_) => 0,
    }
}

/// The field of TAO's body for a field of our request.
pub fn container_job_pointer(pointer: &str) -> String {
    let first = pointer.split('/').nth(1).unwrap_or_default();
    match (first, pointer) {
        ("image" | "network_arch", _) => "/neural_network_name".to_owned(),
        ("action", _) => "/action_name".to_owned(),
        ("id", _) => "/job_id".to_owned(),
        (_, "/resources/num_nodes") => "/statefulset_replicas".to_owned(),
        ("resources", _) => "/specs".to_owned(),
        _ => pointer.to_owned(),
    }
}

/// A results directory that identifies a job.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ResultsDir {
    /// Its text in the specifications of stored jobs.
    pub as_stored: String,
    /// The job's id: TAO names the results directory after it.
    pub id: Option<Uuid>,
}

impl ResultsDir {
    pub fn new(text: &str) -> Self {
        let as_stored = match reference(text) {
            Reference::Shared(Ok(path)) => path,
            Reference::Shared(Err(_))
            | Reference::Absolute
            | Reference::Local { .. }
            | Reference::Remote { .. }
            | Reference::Bare => text.to_owned(),
        };
        let last = text.trim_end_matches('/').rsplit('/').next().unwrap_or_default();
        Self { as_stored, id: last.parse().ok() }
    }
}

#[cfg(test)]
mod tests;
