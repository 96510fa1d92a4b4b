//! TAO's own job format: the body that its services post to the microservice in a container, and its translation into a
//! request of this service.

mod gpus;

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::{Map, Value};
use utoipa::ToSchema;
use uuid::Uuid;

use crate::{
    image::ImageRef,
    request::{
        body::{JobRequest, ResourcesRequest},
        cosmos,
        uri::{Reference, reference},
    },
    violation::Violation,
};
use gpus::gpus_per_node;

/// A job in TAO's format.
#[derive(Debug, Clone, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ContainerJob {
    /// TAO's network architecture, such as `classification_pyt`. The service's configuration maps it to an image.
    pub neural_network_name: String,
    /// TAO's action, such as `train`.
    pub action_name: String,
    /// The experiment's specification. Its `results_dir` identifies the job in status requests.
    #[schema(value_type = Option<Object>)]
    pub specs: Option<Map<String, Value>>,
    /// TAO's workspace details and credentials. `slurm_user` and `slurm_hostname` select a configured cluster. The values are
    /// encrypted at rest and never returned.
    #[schema(value_type = Option<Object>, write_only)]
    pub cloud_metadata: Option<Map<String, Value>>,
    /// Environment variables of the job. A value is secret if its name indicates it, such as `*TOKEN*`; secrets are encrypted at
    /// rest and never returned.
    #[schema(value_type = Option<BTreeMap<String, Option<String>>>)]
    pub docker_env_vars: Option<BTreeMap<String, Option<String>>>,
    /// The caller's own UUID for the job. Default: a new one.
    pub job_id: Option<Uuid>,
    /// The number of nodes. Default: 1.
    pub statefulset_replicas: Option<u32>,
}

/// The images of networks, because TAO's format names none.
#[derive(Debug, Clone, Default)]
pub struct ContainerImages {
    pub by_network: BTreeMap<String, ImageRef>,
    /// For every other network.
    pub default: Option<ImageRef>,
}

/// Variables for TAO's own container. This service sets them itself: with TAO's values the job would call TAO's services, or write its
/// results elsewhere.
const OURS: [&str; 4] = ["CLOUD_BASED", "TAO_API_RESULTS_DIR", "TAO_API_JOB_ID", "TAO_EXECUTION_BACKEND"];

impl ContainerJob {
    /// Translates the job into a request of this service.
    pub fn into_request(self, images: &ContainerImages) -> Result<JobRequest, Violation> {
        let network = self.neural_network_name;
        let image = images.by_network.get(&network).or(images.default.as_ref()).ok_or_else(|| {
            Violation::new(
                "/neural_network_name",
                "no_image",
                "has no image here; whoever runs this service names one in its configuration: tao.images, or \
                 tao.default_image for all networks",
            )
        })?;
        let specs = self.specs.unwrap_or_default();
        // The roles of a Cosmos training set their own numbers of nodes and GPUs.
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

/// The field of TAO's format that a field of the request came from.
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

/// A results directory as a key to its job: its spelling in specifications, and the id at its end.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ResultsDir {
    /// The spelling in the specifications of stored jobs.
    pub as_stored: String,
    /// The last part of the path: TAO names results directories after job ids.
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
