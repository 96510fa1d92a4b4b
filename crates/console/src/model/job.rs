//! Jobs.

use std::collections::BTreeMap;

use serde::{Deserialize, Deserializer, de::Error};
use serde_json::{Map, Value};

use super::{Attempt, JobFailure, Moment, Need, TaskCounts, Text};

#[derive(Debug, Deserialize)]
pub(crate) struct JobList {
    pub(crate) jobs: Vec<JobSummary>,
    pub(crate) next_page_token: Option<String>,
    pub(crate) facets: Option<Facets>,
}

/// The most frequent values of fields, with their jobs.
#[derive(Debug, Deserialize)]
pub(crate) struct Facets {
    pub(crate) status: Vec<Facet>,
    pub(crate) cluster: Vec<Facet>,
    pub(crate) owner: Vec<Facet>,
    pub(crate) partition: Vec<Facet>,
    pub(crate) rule: Vec<Facet>,
}

#[derive(Debug, Clone, Deserialize)]
pub(crate) struct Facet {
    pub(crate) value: Text,
    pub(crate) jobs: u64,
}

/// A job in a list.
#[derive(Debug, Deserialize)]
pub(crate) struct JobSummary {
    pub(crate) id: String,
    pub(crate) name: Option<Text>,
    pub(crate) status: Text,
    pub(crate) phase: Text,
    pub(crate) message: Text,
    pub(crate) pending: Option<Pending>,
    pub(crate) slurm_job_id: Option<Text>,
    pub(crate) slurm_state: Option<Text>,
    pub(crate) cluster: Text,
    pub(crate) partition: Option<Text>,
    pub(crate) nodes: Vec<Text>,
    pub(crate) attempt: u32,
    pub(crate) progress: Progress,
    pub(crate) tasks: Option<TaskCounts>,
    pub(crate) created_on: Moment,
    pub(crate) submitted_on: Option<Moment>,
    pub(crate) started_on: Option<Moment>,
    pub(crate) finished_on: Option<Moment>,
    pub(crate) observed_at: Option<Moment>,
    pub(crate) stale: bool,
    pub(crate) owner: Text,
    pub(crate) labels: BTreeMap<Text, Text>,
    pub(crate) image: Option<Text>,
    pub(crate) gpus: u32,
    pub(crate) gpu_percent: Option<f64>,
    pub(crate) failure: Option<JobFailure>,
    pub(crate) network_arch: Option<Text>,
    pub(crate) action: Option<Text>,
}

/// What a call that changes a job returns.
#[derive(Debug, Deserialize)]
pub(crate) struct JobStatus {
    pub(crate) status: Text,
    pub(crate) message: Text,
}

/// Why a job waits.
#[derive(Debug, Deserialize)]
pub(crate) struct Pending {
    pub(crate) reason: Option<Text>,
    pub(crate) meaning: Option<Text>,
    pub(crate) held_by: Option<Text>,
    pub(crate) limit: Option<Text>,
    pub(crate) advice: Option<Text>,
    pub(crate) needs_action: bool,
    pub(crate) queued_on: Option<Moment>,
    pub(crate) estimated_start_on: Option<Moment>,
}

/// How far a job has come.
#[derive(Debug, Deserialize)]
pub(crate) struct Progress {
    pub(crate) epoch: Option<u64>,
    pub(crate) max_epoch: Option<u64>,
    pub(crate) percent: Option<u8>,
    pub(crate) done: Option<f64>,
    pub(crate) total: Option<f64>,
    pub(crate) eta: Option<Text>,
    pub(crate) message: Option<Text>,
    pub(crate) metrics: Map<String, Value>,
}

/// The whole job.
#[derive(Debug)]
pub(crate) struct Job {
    pub(crate) summary: JobSummary,
    pub(crate) details: JobDetails,
}

impl<'de> Deserialize<'de> for Job {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        // One object has the fields of both. `flatten` would hide the names from the test that looks for them in the API's document.
        let whole = Value::deserialize(deserializer)?;
        let summary = JobSummary::deserialize(&whole).map_err(D::Error::custom)?;
        Ok(Self { summary, details: JobDetails::deserialize(whole).map_err(D::Error::custom)? })
    }
}

/// The fields that a list does not have.
#[derive(Debug, Deserialize)]
pub(crate) struct JobDetails {
    pub(crate) specs: Option<Value>,
    pub(crate) command: Option<Text>,
    pub(crate) steps: Vec<Component>,
    pub(crate) services: Vec<Component>,
    pub(crate) setup: Vec<Text>,
    pub(crate) files: Vec<Text>,
    pub(crate) workdir: Option<Text>,
    pub(crate) docker_env_vars: BTreeMap<Text, Text>,
    pub(crate) secret_env_vars: Vec<Text>,
    pub(crate) inputs: Vec<Text>,
    pub(crate) array: Option<Array>,
    pub(crate) needs: Vec<Need>,
    pub(crate) pipeline: Option<PipelinePlace>,
    pub(crate) results: Vec<ResultRule>,
    pub(crate) resources: Resources,
    pub(crate) retry: Retry,
    pub(crate) backend_details: Backend,
    pub(crate) warnings: Vec<Note>,
    pub(crate) attempt_details: Option<Attempt>,
}

#[derive(Debug, Deserialize)]
pub(crate) struct Array {
    pub(crate) tasks: u32,
    pub(crate) indices: Text,
    pub(crate) max_parallel: Option<u32>,
}

#[derive(Debug, Deserialize)]
pub(crate) struct PipelinePlace {
    pub(crate) id: String,
    pub(crate) name: Text,
}

#[derive(Debug, Deserialize)]
pub(crate) struct ResultRule {
    pub(crate) name: Text,
}

#[derive(Debug, Deserialize)]
pub(crate) struct Resources {
    pub(crate) num_nodes: u32,
    pub(crate) gpus_per_node: u32,
    pub(crate) total_gpus: u32,
    pub(crate) cpus_per_task: u32,
    pub(crate) time_hours: f64,
    pub(crate) gpu_type: Option<Text>,
}

#[derive(Debug, Deserialize)]
pub(crate) struct Retry {
    pub(crate) max_retries: u32,
}

#[derive(Debug, Deserialize)]
pub(crate) struct Backend {
    pub(crate) partition: Option<Text>,
    pub(crate) cluster_name: Text,
    pub(crate) account: Option<Text>,
    pub(crate) qos: Option<Text>,
    pub(crate) slurm_metadata: SlurmMetadata,
}

#[derive(Debug, Deserialize)]
pub(crate) struct SlurmMetadata {
    pub(crate) job_dir: Option<Text>,
}

/// A step or a service.
#[derive(Debug, Deserialize)]
pub(crate) struct Component {
    pub(crate) name: Text,
    pub(crate) command: Text,
    pub(crate) first_node: u32,
    pub(crate) nodes: u32,
    pub(crate) with_previous: bool,
    pub(crate) image: Option<Text>,
    pub(crate) port: Option<u16>,
    pub(crate) ready: Option<Ready>,
}

/// When a service is ready.
#[derive(Debug, Deserialize)]
pub(crate) struct Ready {
    pub(crate) http: Option<Text>,
    pub(crate) tcp: bool,
    pub(crate) file: Option<Text>,
    pub(crate) log_pattern: Option<Text>,
    pub(crate) timeout_seconds: u32,
}

/// An accepted setting that may be a mistake.
#[derive(Debug, Deserialize)]
pub(crate) struct Note {
    pub(crate) pointer: Text,
    pub(crate) detail: Text,
}

/// The result of a validation.
#[derive(Debug, Deserialize)]
pub(crate) struct Validation {
    pub(crate) job: ValidJob,
    pub(crate) batch_script: Text,
    pub(crate) submissions: u32,
    pub(crate) warnings: Vec<Note>,
    pub(crate) live: Option<Live>,
}

#[derive(Debug, Deserialize)]
pub(crate) struct ValidJob {
    pub(crate) cluster: Text,
    pub(crate) partition: Option<Text>,
    pub(crate) resources: Resources,
}

/// The cluster's own checks.
#[derive(Debug, Deserialize)]
pub(crate) struct Live {
    pub(crate) accepted: bool,
    pub(crate) sbatch_output: Text,
    pub(crate) missing_paths: Vec<Text>,
    pub(crate) unknown_paths: Vec<Text>,
}

#[derive(Debug, Deserialize)]
pub(crate) struct EventList {
    pub(crate) events: Vec<Event>,
    pub(crate) next_after: u64,
}

/// A transition, or a line of a status file.
#[derive(Debug, Deserialize)]
pub(crate) struct Event {
    pub(crate) seq: u64,
    pub(crate) at: Moment,
    pub(crate) kind: Text,
    pub(crate) attempt: u32,
    pub(crate) file: Option<Text>,
    pub(crate) data: Value,
}
