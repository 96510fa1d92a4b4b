//! The whole job, with its effective settings.

use std::collections::BTreeMap;

use domain::{ContainerRuntime, Job, Launcher, LauncherSettings, Need, Note, Restart, RestartCause, Work};
use serde::Serialize;
use serde_json::{Map, Value};
use utoipa::ToSchema;

use super::{
    attempt::AttemptView,
    component::ComponentView,
    job_summary::{JobSummary, Surroundings, texts},
    need::PipelineMemberView,
    options::PlacementView,
    result::ResultRuleView,
    task::ArrayView,
};

/// The whole job with its effective settings.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct JobView {
    /// The fields of a list entry.
    #[serde(flatten)]
    pub summary: JobSummary,
    /// The experiment's specification with URIs turned into paths; null for a `command`.
    #[schema(value_type = Option<Object>)]
    pub specs: Option<Value>,
    /// The shell command; null for a TAO job.
    pub command: Option<String>,
    /// The steps; empty for other work.
    pub steps: Vec<ComponentView>,
    /// The services beside them.
    pub services: Vec<ComponentView>,
    /// How the command becomes processes; null for `tasks_per_node` processes on each node.
    #[schema(value_type = Option<LauncherSettings>)]
    pub launcher: Option<Launcher>,
    /// The lines that run before the program of each task.
    pub setup: Vec<String>,
    /// The names of the files that are staged with the job.
    pub files: Vec<String>,
    /// The directory that the program starts in.
    pub workdir: Option<String>,
    /// The environment without secret variables.
    pub docker_env_vars: BTreeMap<String, String>,
    /// The names of the secret variables. No answer contains their values.
    pub secret_env_vars: Vec<String>,
    /// TAO's workspace details without secrets.
    #[schema(value_type = Object)]
    pub cloud_metadata: Map<String, Value>,
    /// The top-level names of the secret workspace details. No answer contains their values.
    pub secret_cloud_metadata: Vec<String>,
    /// The input files and directories from the request.
    pub inputs: Vec<String>,
    /// Everything that must exist on the cluster before the job is staged, except below the cluster's `node_local_paths`: the
    /// inputs, the data sets in `specs`, and an image that is a file.
    pub required_paths: Vec<String>,
    pub array: Option<ArrayView>,
    /// The jobs that it waits for.
    pub needs: Vec<Need>,
    /// The pipeline that it was stored with; null for a job of its own.
    pub pipeline: Option<PipelineMemberView>,
    /// What is read of each task when it has ended.
    pub results: Vec<ResultRuleView>,
    /// The file in its results directory in which its program writes how far it has come.
    pub progress_file: Option<String>,
    /// The number that the progress file has when all is done.
    pub progress_total: Option<u64>,
    /// The effective resources.
    pub resources: ResourcesView,
    /// The retry budget.
    pub retry: RetryView,
    /// When the job goes on after an attempt that did not succeed.
    pub restart: RestartView,
    /// Whether Slurm may requeue the job.
    pub use_requeue: bool,
    /// A running job that writes nothing for this many minutes is canceled; null for no limit.
    pub timeout_minutes: Option<u32>,
    /// The container settings.
    pub container: ContainerView,
    /// Accepted settings that may be mistakes.
    pub warnings: Vec<Note>,
    /// The `traceparent` of the request that created the job.
    pub traceparent: Option<String>,
    /// The newest attempt; null before the first.
    pub attempt_details: Option<AttemptView>,
}

/// The effective resources: the request, completed by the cluster's defaults.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct ResourcesView {
    /// The number of nodes.
    pub num_nodes: u32,
    /// GPUs per node.
    pub gpus_per_node: u32,
    /// The total number of GPUs.
    pub total_gpus: u32,
    /// The number of GPUs in a node.
    pub max_num_gpus_per_node: u32,
    /// Tasks of each node.
    pub tasks_per_node: u32,
    /// CPUs of each task.
    pub cpus_per_task: u32,
    /// Whether the job has its nodes to itself.
    pub exclusive: bool,
    /// The Slurm time limit, in hours.
    pub time_hours: f64,
    /// The soft time limit of the job, in hours.
    pub timeout_hours: f64,
    /// The rendezvous port of the job's nodes; null if the job finds one that no other job on its first node uses.
    pub master_port: Option<u16>,
    /// Memory, resources and nodes.
    #[serde(flatten)]
    pub placement: PlacementView,
}

/// The retry budget.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct RetryView {
    /// The number of attempts after the first, for infrastructure failures.
    pub max_retries: u32,
}

/// The restart policy.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct RestartView {
    /// The ends of an attempt after which the job goes on.
    pub on: Vec<RestartCause>,
    /// The exit codes after which it goes on.
    pub exit_codes: Vec<u8>,
    /// How long a task may run in all its attempts together; null without a limit.
    pub max_total_hours: Option<f64>,
    /// The wait before an attempt, in seconds; null for the defaults.
    pub delay_seconds: Option<u32>,
    /// Whether each attempt queues the next one in Slurm.
    pub prequeue: bool,
}

impl From<&Restart> for RestartView {
    fn from(restart: &Restart) -> Self {
        Self {
            on: restart.on.iter().copied().collect(),
            exit_codes: restart.exit_codes.iter().copied().collect(),
            max_total_hours: restart.max_total_hours(),
            delay_seconds: restart.delay_seconds,
            prequeue: restart.prequeue,
        }
    }
}

/// The container settings.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct ContainerView {
    /// `/path`, `/path:/inside` or `/path:/inside:ro`.
    pub mounts: Vec<String>,
    /// What makes the container.
    pub runtime: ContainerRuntime,
    /// Whether the image is converted to a SquashFS file before the job starts.
    pub use_sqsh: bool,
    /// Whether a failed conversion fails the job.
    pub require_sqsh: bool,
    /// Whether an image with the tag `latest` is converted again.
    pub force_reconvert_latest: bool,
    /// Whether the container has the user's home directory; null for the default.
    pub mount_home: Option<bool>,
}

impl JobView {
    pub(crate) fn new(job: &Job, around: Surroundings<'_>) -> Self {
        let (specs, command) = match &job.spec.work {
            Work::Tao { specs, .. } => (Some(specs.clone()), None),
            Work::Command { text } => (None, Some(text.clone())),
            Work::Components { .. } => (None, None),
        };
        let resources = &job.spec.resources;
        let hours = |time: slurm::WallTime| f64::from(time.minutes()) / 60.0;
        Self {
            summary: JobSummary::new(job, around),
            specs,
            command,
            steps: ComponentView::all(&job.spec.work, false),
            services: ComponentView::all(&job.spec.work, true),
            launcher: job.spec.program.launcher.clone(),
            setup: job.spec.program.setup.clone(),
            files: job.spec.program.files.keys().cloned().collect(),
            workdir: job.spec.program.workdir.as_ref().map(ToString::to_string),
            docker_env_vars: texts(&job.spec.env),
            secret_env_vars: job.spec.secret_env.iter().map(ToString::to_string).collect(),
            array: job.spec.array.as_ref().map(ArrayView::from),
            needs: job.spec.needs.clone(),
            pipeline: job.spec.pipeline.as_ref().map(PipelineMemberView::from),
            results: job.spec.results.iter().map(ResultRuleView::from).collect(),
            progress_file: job.spec.progress.as_ref().map(|file| file.path.clone()),
            progress_total: job.spec.progress.as_ref().map(|file| file.total.get()),
            resources: ResourcesView {
                num_nodes: resources.nodes,
                gpus_per_node: resources.gpus_per_node,
                total_gpus: resources.total_gpus(),
                max_num_gpus_per_node: resources.max_gpus_per_node,
                tasks_per_node: resources.tasks_per_node,
                cpus_per_task: resources.cpus_per_task,
                exclusive: resources.exclusive,
                time_hours: hours(resources.time),
                timeout_hours: f64::from(resources.soft_timeout.seconds()) / 3600.0,
                master_port: job.spec.port(),
                placement: PlacementView::from(&job.spec.options),
            },
            cloud_metadata: job.spec.cloud_plain.clone(),
            secret_cloud_metadata: job.spec.cloud_secret_keys.iter().cloned().collect(),
            inputs: job.spec.inputs.iter().map(ToString::to_string).collect(),
            required_paths: job.spec.required_paths.iter().map(ToString::to_string).collect(),
            retry: RetryView { max_retries: job.spec.max_retries },
            restart: RestartView::from(&job.spec.restart),
            use_requeue: job.spec.use_requeue,
            warnings: around
                .cluster
                .map(|cluster| job.spec.warnings(cluster))
                .into_iter()
                .flatten()
                .map(Note::from)
                .chain(job.spec.notes.iter().cloned())
                .collect(),
            traceparent: job.spec.trace.as_ref().map(ToString::to_string),
            timeout_minutes: job.spec.timeout_minutes.map(std::num::NonZeroU32::get),
            container: ContainerView {
                mounts: job.spec.mounts.iter().map(ToString::to_string).collect(),
                runtime: job.spec.image_policy.runtime,
                use_sqsh: job.spec.image_policy.use_sqsh,
                require_sqsh: job.spec.image_policy.require_sqsh,
                force_reconvert_latest: job.spec.image_policy.force_reconvert_latest,
                mount_home: job.spec.mount_home,
            },
            attempt_details: job.attempt.as_ref().map(|attempt| AttemptView::new(attempt, &job.run)),
        }
    }
}
