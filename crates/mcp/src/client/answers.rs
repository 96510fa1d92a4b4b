//! The few fields of the API's answers that tools return. Texts are harmless and have a limit as soon as they are read.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::text::{Few, Text};

/// A word of the API, such as a status.
pub(crate) type Word = Text<64>;

/// The status of a job.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub(crate) struct JobStatus {
    pub(crate) id: Word,
    pub(crate) name: Option<Text>,
    /// Pending, Started, Running, Done, Error, Canceling, Canceled, Pausing, Paused or Resuming.
    pub(crate) status: Word,
    pub(crate) phase: Word,
    /// What happens now and why. It may quote the job's own output.
    pub(crate) message: Text<1500>,
    /// Why the job waits; null if it does not.
    pub(crate) pending: Option<Pending>,
    pub(crate) slurm_job_id: Option<Word>,
    pub(crate) slurm_state: Option<Word>,
    pub(crate) cluster: Word,
    pub(crate) partition: Option<Text>,
    pub(crate) nodes: Few<Word, 16>,
    pub(crate) attempt: u32,
    pub(crate) retry_count: u32,
    /// Why the job failed, in short.
    pub(crate) failure: Option<JobFailure>,
    pub(crate) progress: Progress,
    /// How many tasks of an array are in each state.
    pub(crate) tasks: Option<TaskCounts>,
    pub(crate) created_on: Word,
    pub(crate) started_on: Option<Word>,
    pub(crate) finished_on: Option<Word>,
    /// When the cluster last reported the job.
    pub(crate) observed_at: Option<Word>,
    /// Whether the cluster has not answered for some time, so that this may be old.
    pub(crate) stale: bool,
}

#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub(crate) struct Pending {
    pub(crate) reason: Option<Word>,
    pub(crate) meaning: Option<Text<500>>,
    pub(crate) held_by: Option<Word>,
    pub(crate) limit: Option<Text>,
    pub(crate) advice: Option<Text<500>>,
    /// Whether the job waits until someone does something.
    pub(crate) needs_action: bool,
    pub(crate) estimated_start_on: Option<Word>,
}

#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub(crate) struct JobFailure {
    pub(crate) rule: Word,
    pub(crate) category: Word,
    pub(crate) node: Option<Word>,
    pub(crate) advice: Text<500>,
}

#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub(crate) struct Progress {
    pub(crate) percent: Option<f64>,
    pub(crate) done: Option<f64>,
    pub(crate) total: Option<f64>,
    pub(crate) message: Option<Text>,
}

#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub(crate) struct TaskCounts {
    total: u64,
    pending: u64,
    running: u64,
    done: u64,
    error: u64,
    canceled: u64,
}

/// A page of jobs.
#[derive(Debug, Deserialize)]
pub(crate) struct JobList {
    pub(crate) jobs: Vec<Row>,
    pub(crate) next_page_token: Option<String>,
}

/// A job in a list.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
pub(crate) struct Row {
    id: Word,
    name: Option<Text<100>>,
    owner: Text<64>,
    status: Word,
    phase: Word,
    message: Text<160>,
    cluster: Word,
    gpus: u32,
    failure: Option<RowFailure>,
    created_on: Word,
    finished_on: Option<Word>,
}

#[derive(Debug, Serialize, Deserialize, JsonSchema)]
struct RowFailure {
    rule: Word,
    category: Word,
}

/// The job as it is stored or would be.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
pub(crate) struct Job {
    /// Of a dry run, an id that no job has.
    pub(crate) id: Word,
    pub(crate) name: Option<Text>,
    pub(crate) status: Word,
    pub(crate) image: Option<Text>,
    pub(crate) command: Option<Text<1000>>,
    pub(crate) network_arch: Option<Text>,
    pub(crate) action: Option<Text>,
    pub(crate) resources: Resources,
    pub(crate) backend_details: Place,
    pub(crate) array: Option<Array>,
}

#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub(crate) struct Resources {
    pub(crate) num_nodes: u32,
    pub(crate) gpus_per_node: u32,
    pub(crate) total_gpus: u32,
    pub(crate) tasks_per_node: u32,
    pub(crate) cpus_per_task: u32,
    /// The time limit.
    pub(crate) time_hours: f64,
    /// Null for the partition's default.
    pub(crate) memory: Option<Memory>,
    pub(crate) gpu_type: Option<Text>,
    pub(crate) exclusive: bool,
}

#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
#[expect(clippy::struct_field_names, reason = "the names of the API")]
pub(crate) struct Memory {
    pub(crate) per_node: Option<Word>,
    pub(crate) per_cpu: Option<Word>,
    pub(crate) per_gpu: Option<Word>,
}

#[derive(Debug, Serialize, Deserialize, JsonSchema)]
pub(crate) struct Place {
    pub(crate) cluster_name: Word,
    pub(crate) partition: Option<Text>,
    account: Option<Word>,
    qos: Option<Word>,
}

#[derive(Debug, Serialize, Deserialize, JsonSchema)]
pub(crate) struct Array {
    tasks: u32,
}

#[derive(Debug, Deserialize)]
pub(crate) struct Validation {
    pub(crate) job: Job,
    pub(crate) batch_script: Text<6000>,
    pub(crate) submissions: u32,
    pub(crate) warnings: Few<Warning, 20>,
    pub(crate) live: Option<Live>,
}

/// A setting that may be a mistake.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
pub(crate) struct Warning {
    pointer: Text,
    code: Word,
    detail: Text<500>,
}

/// The cluster's own checks.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
pub(crate) struct Live {
    pub(crate) accepted: bool,
    sbatch_output: Text<600>,
    pub(crate) missing_paths: Few<Text, 10>,
    /// Paths that the file system did not report in time. They may exist.
    unknown_paths: Few<Text, 10>,
}

/// The first cause of a failure.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
pub(crate) struct Diagnosis {
    attempt: u32,
    task: u32,
    pub(crate) rule: Word,
    pub(crate) category: Word,
    why: Text<500>,
    advice: Text<500>,
    node: Option<Word>,
    rank: Option<u32>,
    /// The line of the log that shows the cause; null if Slurm proves it or no line explains the failure.
    first: Option<LogLine>,
    /// Lines that followed from it.
    followed: Few<LogLine, 3>,
    /// Whether a part of the logs was not searched.
    pub(crate) has_gaps: bool,
}

#[derive(Debug, Serialize, Deserialize, JsonSchema)]
pub(crate) struct LogLine {
    log: Text,
    offset: u64,
    line: Text<600>,
}

#[derive(Debug, Deserialize)]
pub(crate) struct Usage {
    pub(crate) notes: Few<Text, 6>,
    pub(crate) accounted: Accounted,
}

#[derive(Debug, Deserialize)]
pub(crate) struct Accounted {
    pub(crate) most_memory_mib: Option<u64>,
}

#[derive(Debug, Deserialize)]
pub(crate) struct LogSearch {
    pub(crate) attempt: u32,
    pub(crate) complete: bool,
    pub(crate) hits: Few<LogHit, 20>,
    pub(crate) logs: Few<SearchedLog, 10>,
}

/// A match.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
pub(crate) struct LogHit {
    log: Text,
    offset: u64,
    excerpt: Text<450>,
}

/// How far a log was searched.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
pub(crate) struct SearchedLog {
    log: Text,
    size: u64,
    from: u64,
    to: u64,
    complete: bool,
}

#[derive(Debug, Deserialize)]
pub(crate) struct ClusterList {
    pub(crate) clusters: Vec<Cluster>,
}

#[derive(Debug, Deserialize)]
pub(crate) struct Cluster {
    /// The API's own names, which are addresses too.
    pub(crate) name: String,
    pub(crate) is_default: bool,
    pub(crate) state: Word,
}

#[derive(Debug, Deserialize)]
pub(crate) struct PartitionList {
    pub(crate) fetched_on: Option<Word>,
    pub(crate) stale: bool,
    pub(crate) error: Option<Text>,
    pub(crate) partitions: Few<Partition, 12>,
}

#[derive(Debug, Serialize, Deserialize, JsonSchema)]
pub(crate) struct Partition {
    name: Word,
    is_default: bool,
    availability: Word,
    time_limit_hours: Option<f64>,
    max_nodes: Option<u32>,
    nodes: u32,
    nodes_by_state: Counts,
    gpus_per_node: Option<u32>,
    gpu_types: Few<Word, 8>,
    cpus_per_node: Option<u32>,
    memory_mib_per_node: Option<u64>,
}

/// Nodes by their state.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(transparent)]
struct Counts(BTreeMap<String, u64>);

impl<'de> Deserialize<'de> for Counts {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let counts = BTreeMap::<String, u64>::deserialize(deserializer)?;
        Ok(Self(
            counts
                .into_iter()
                .take(12)
                .map(|(state, nodes)| (Word::new(&state).as_str().to_owned(), nodes))
                .collect(),
        ))
    }
}

/// What a test of a cluster found.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
pub(crate) struct Preflight {
    pub(crate) cluster: Word,
    /// pass, warn, fail or skipped.
    pub(crate) outcome: Word,
    checked_on: Word,
    pub(crate) checks: Vec<Check>,
}

#[derive(Debug, Serialize, Deserialize, JsonSchema)]
pub(crate) struct Check {
    id: Word,
    subject: Option<Word>,
    pub(crate) outcome: Word,
    observed: Text<400>,
    fix: Option<Text<400>>,
}
