//! A validated job.

mod from_request;
mod inputs;

pub(in crate::request) use from_request::labels;

use std::{
    collections::{BTreeMap, BTreeSet},
    num::NonZeroU32,
};

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use slurm::{EnvKey, Moment, PartitionList, RemotePath, SubmitOptions, TaskSet, TraceParent};
use utoipa::ToSchema;
use uuid::Uuid;

use crate::{
    cluster::{
        idle::IdlePolicy,
        mount::Mount,
        policy::{ImagePolicy, MAX_RETRIES},
        resources::Resources,
    },
    image::ImageRef,
    request::{
        array::JobArray,
        component::JobComponent,
        cosmos,
        needs::{Need, NeedWhen},
        program::ProgramSettings,
        progress::ProgressFile,
        restart::Restart,
        results::ResultRule,
        text::{Label, Word},
    },
    violation::Violation,
};

/// A validated job. It holds no secret.
///
/// A field that a job of an earlier release lacks defaults to what that release did.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct JobSpec {
    pub name: Option<Label>,
    pub labels: BTreeMap<Label, String>,
    pub work: Work,
    /// Its tasks; a job without an array has one task, number 0.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub array: Option<JobArray>,
    /// The jobs that it waits for.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub needs: Vec<Need>,
    /// The pipeline that it was stored with.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pipeline: Option<PipelineMember>,
    /// What is read of each task when it has ended.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub results: Vec<ResultRule>,
    /// Where its program writes how far it has come.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub progress: Option<ProgressFile>,
    pub image: Option<ImageRef>,
    #[serde(default)]
    pub image_policy: ImagePolicy,
    pub env: BTreeMap<EnvKey, String>,
    /// The names of the secret variables. Their values are sealed separately.
    pub secret_env: BTreeSet<EnvKey>,
    /// The plain part of TAO's workspace details. The rest is in [`Secrets::cloud_metadata`](crate::Secrets).
    #[serde(default)]
    pub cloud_plain: Map<String, Value>,
    /// The top-level names of the sealed workspace details.
    #[serde(default)]
    pub cloud_secret_keys: BTreeSet<String>,
    /// The files and directories in the request's `inputs`.
    #[serde(default)]
    pub inputs: Vec<RemotePath>,
    /// All paths that must exist before the job is staged: the inputs, the data sets of its specification, and an image
    /// that is a file. Those that only the nodes have are not checked.
    #[serde(default)]
    pub required_paths: Vec<RemotePath>,
    pub resources: Resources,
    /// `num_gpus` of the request, unless it sets `gpus_per_node` too and the job gets this total. By TAO's rule the job may get another
    /// number.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub requested_gpus: Option<u32>,
    /// The rendezvous port on the job's first node. Without one the nodes decide: see [`Self::port`].
    #[serde(default)]
    pub master_port: Option<u16>,
    /// How and where its command runs.
    #[serde(default, skip_serializing_if = "ProgramSettings::is_default")]
    pub program: ProgramSettings,
    /// Retries after infrastructure failures.
    #[serde(default = "default_max_retries")]
    pub max_retries: u32,
    /// When it goes on after an attempt that did not succeed.
    #[serde(default, skip_serializing_if = "Restart::is_default")]
    pub restart: Restart,
    /// Slurm may requeue the job under the same id.
    #[serde(default = "default_use_requeue")]
    pub use_requeue: bool,
    /// The service ends a running job that writes nothing for this long. Default: no such limit.
    #[serde(default)]
    pub timeout_minutes: Option<NonZeroU32>,
    /// What becomes of it if it does not use its GPUs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub idle_policy: Option<IdlePolicy>,
    pub mounts: Vec<Mount>,
    /// Whether a container has the user's home directory. Default: of steps and services false, otherwise as the site configures it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mount_home: Option<bool>,
    pub partitions: Option<PartitionList>,
    /// What it asks Slurm for beyond its resources.
    #[serde(default)]
    pub options: SubmitOptions,
    /// The earliest start.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub begin: Option<Moment>,
    /// The latest end.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deadline: Option<Moment>,
    /// What the cluster's last report made doubtful when the job was accepted. Stored, because the report changes.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<Note>,
    /// The trace of the request that created the job.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trace: Option<TraceParent>,
}

impl JobSpec {
    /// The rendezvous port; none if other jobs share the nodes, so that each has to find its own.
    pub fn port(&self) -> Option<u16> {
        self.master_port.or(self.resources.exclusive.then_some(DEFAULT_MASTER_PORT))
    }

    /// Whether its programs have logs of their own, beside those of the job.
    pub fn has_component_logs(&self) -> bool {
        !self.components().is_empty() || cosmos::has_roles(self)
    }

    /// Its steps and services, if it has several programs.
    pub fn components(&self) -> &[JobComponent] {
        match &self.work {
            Work::Components { list } => list,
            Work::Tao { .. } | Work::Command { .. } => &[],
        }
    }

    /// Whether it has values that are erased at its end.
    pub fn has_secrets(&self) -> bool {
        let mut of_components = self.components().iter().map(|component| &component.own.secret_env);
        !self.secret_env.is_empty()
            || !self.cloud_secret_keys.is_empty()
            || of_components.any(|names| !names.is_empty())
    }

    /// The images that it runs, each once.
    pub fn images(&self) -> Vec<&ImageRef> {
        let mut images: Vec<&ImageRef> = Vec::new();
        let of_job = self.image.iter().filter(|_| self.components().is_empty());
        for image in of_job
            .chain(self.components().iter().filter_map(|component| component.image(self.image.as_ref())))
        {
            if !images.contains(&image) {
                images.push(image);
            }
        }
        images
    }

    /// Whether its tasks wait for tasks of other jobs.
    pub fn awaits_tasks(&self) -> bool {
        self.needs.iter().any(|need| need.when == NeedWhen::Each)
    }

    /// The numbers of its tasks.
    pub fn tasks(&self) -> TaskSet {
        self.array.as_ref().map_or_else(TaskSet::single, JobArray::tasks)
    }

    /// How many times sbatch is called for all its tasks, on a cluster with this `MaxArraySize`.
    pub fn submissions(&self, max_array_size: u32) -> u32 {
        let size = self.array.as_ref().map_or(1, |array| array.piece_size(max_array_size));
        u32::try_from(self.tasks().pieces(size).len()).unwrap_or(u32::MAX)
    }
}

/// The place of a job in a pipeline.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PipelineMember {
    pub id: Uuid,
    /// Its name in the pipeline.
    pub name: Word,
    /// Each job has a higher one than those that it needs.
    pub place: u32,
}

/// An accepted setting that may be a mistake.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[schema(as = WarningView)]
pub struct Note {
    /// JSON pointer to the field in the request.
    pub pointer: String,
    /// A stable name of the rule.
    pub code: String,
    /// What happens, and what the alternative is.
    pub detail: String,
}

impl From<Violation> for Note {
    fn from(Violation { pointer, code, detail }: Violation) -> Self {
        Self { pointer, code: code.to_owned(), detail }
    }
}

/// The port that TAO documents, and torch's own default.
pub const DEFAULT_MASTER_PORT: u16 = 29500;

fn default_max_retries() -> u32 {
    MAX_RETRIES
}

fn default_use_requeue() -> bool {
    true
}

/// The program of a job.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "kind")]
pub enum Work {
    /// The TAO container's own entry point.
    Tao { network_arch: Word, action: Word, specs: Value },
    /// A shell script, run by `bash -euo pipefail`.
    Command { text: String },
    /// Services and steps, each a shell script, in the order of their starts.
    Components { list: Vec<JobComponent> },
}

#[cfg(test)]
mod tests;
