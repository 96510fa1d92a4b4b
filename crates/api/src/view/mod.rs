//! Views: what answers contain. They show secret variables by name only, and no credentials.

use std::collections::BTreeMap;

use chrono::{DateTime, Utc};
use domain::{Attempt, Cluster, Job, JobArray, JobComponent, JobId, Launcher, LauncherSettings, Run, Work};
use serde::Serialize;
use serde_json::{Map, Value};
use slurm::SlurmJobId;
use utoipa::ToSchema;

mod cluster;
mod cluster_defaults;
mod event;
mod options;
mod partition;
mod pending;
mod result;
mod status;
mod task;
mod timeline;
mod warning;
mod webhook;

pub(crate) use cluster::{ClusterFacts, ClusterList, ClusterView, PreflightView, UnusableClusterView};
pub(crate) use event::{EventListView, EventPageView, EventView};
pub(crate) use options::{PlacementView, QueueView};
pub(crate) use partition::PartitionList;
pub(crate) use pending::PendingView;
pub(crate) use result::{ResultRuleView, ResultView, table_row};
pub(crate) use status::{Freshness, StatusView, is_watched};
pub(crate) use task::{TaskCountsView, TaskListView, TaskView};
pub(crate) use timeline::{TimelineEntryView, TimelineView};
pub(crate) use warning::WarningView;
pub(crate) use webhook::{DeadLetterListView, DeadLetterView, WebhookView};

/// A page of jobs, newest first.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct JobList {
    /// The jobs of this page.
    pub jobs: Vec<JobSummary>,
    /// The value of `page_token` for the next page; null on the last one.
    pub next_page_token: Option<String>,
}

/// A job in a list: its status, and the fields that filters use.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct JobSummary {
    /// The job's status.
    #[serde(flatten)]
    pub status: StatusView,
    /// The job's owner.
    pub owner: String,
    /// The labels from the request.
    pub labels: BTreeMap<String, String>,
    /// The container image in Pyxis syntax.
    pub image: Option<String>,
    /// TAO's network architecture; null for a `command`.
    pub network_arch: Option<String>,
    /// TAO's action; null for a `command`.
    pub action: Option<String>,
    /// The job's location in TAO's format.
    pub backend_details: BackendDetailsView,
}

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
    /// What is read of each task when it has ended.
    pub results: Vec<ResultRuleView>,
    /// The effective resources.
    pub resources: ResourcesView,
    /// The retry budget.
    pub retry: RetryView,
    /// Whether Slurm may requeue the job.
    pub use_requeue: bool,
    /// A running job that writes nothing for this many minutes is canceled; null for no limit.
    pub timeout_minutes: Option<u32>,
    /// The container settings.
    pub container: ContainerView,
    /// Accepted settings that may be mistakes.
    pub warnings: Vec<WarningView>,
    /// The `traceparent` of the request that created the job.
    pub traceparent: Option<String>,
    /// The newest attempt; null before the first.
    pub attempt_details: Option<AttemptView>,
}

/// The tasks of a job; null for a job with one task.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct ArrayView {
    /// The number of its tasks.
    pub tasks: u32,
    /// The numbers of its tasks, as Slurm writes them: `0-99` or `3,7-9`.
    pub indices: String,
    /// The most tasks that run at once; null for as many as the cluster allows.
    pub max_parallel: Option<u32>,
}

impl From<&JobArray> for ArrayView {
    fn from(array: &JobArray) -> Self {
        let tasks = array.tasks();
        Self {
            tasks: tasks.len(),
            indices: tasks.to_string(),
            max_parallel: array.max_parallel.map(std::num::NonZeroU32::get),
        }
    }
}

/// A step or a service.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct ComponentView {
    /// Its name, for its logs.
    pub name: String,
    /// The shell script.
    pub command: String,
    /// The number of its first node in the job, counted from 0.
    pub first_node: u32,
    /// The number of its nodes.
    pub nodes: u32,
    /// How the command becomes processes; null for the job's.
    #[schema(value_type = Option<LauncherSettings>)]
    pub launcher: Option<Launcher>,
    /// Whether it starts together with the step before it.
    pub with_previous: bool,
    /// Its own time limit in minutes.
    pub timeout_minutes: Option<u32>,
}

impl ComponentView {
    fn all(work: &Work, services: bool) -> Vec<Self> {
        let Work::Components { list } = work else { return Vec::new() };
        let of_kind = list.iter().filter(|component| component.is_service == services);
        let view = |component: &JobComponent| Self {
            name: component.name.to_string(),
            command: component.text.clone(),
            first_node: component.first_node,
            nodes: component.nodes,
            launcher: component.launcher.clone(),
            with_previous: component.with_previous,
            timeout_minutes: component.timeout_minutes,
        };
        of_kind.map(view).collect()
    }
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

/// The container settings.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct ContainerView {
    /// `/path`, `/path:/inside` or `/path:/inside:ro`.
    pub mounts: Vec<String>,
    /// Whether the image is converted to a SquashFS file before the job starts.
    pub use_sqsh: bool,
    /// Whether a failed conversion fails the job.
    pub require_sqsh: bool,
    /// Whether an image with the tag `latest` is converted again.
    pub force_reconvert_latest: bool,
}

/// TAO's `backend_details`.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct BackendDetailsView {
    /// Always `slurm`.
    pub backend_type: BackendTypeView,
    /// The partitions that the job may run in.
    pub partition: Option<String>,
    /// The cluster's name in the service's configuration.
    pub cluster_name: String,
    /// Account, QOS and other options.
    #[serde(flatten)]
    pub queue: QueueView,
    /// The earliest start; null for none.
    pub begin: Option<String>,
    /// The latest end; null for none.
    pub deadline: Option<String>,
    /// The job in Slurm. Read-only.
    #[schema(read_only)]
    pub slurm_metadata: SlurmMetadataView,
}

/// TAO's `slurm_metadata`.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct SlurmMetadataView {
    /// The newest attempt's Slurm id.
    pub slurm_job_id: Option<String>,
    /// The directory on the cluster for specifications, logs and results; null if the cluster no longer exists.
    pub job_dir: Option<String>,
    /// How often the job was retried.
    pub retry_count: u32,
    /// The Slurm ids of the earlier attempts, oldest first.
    pub failed_slurm_job_ids: Vec<String>,
}

/// The attempts to run a job, oldest first.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct AttemptListView {
    /// The job's id.
    pub job_id: JobId,
    /// The attempts.
    pub attempts: Vec<AttemptView>,
}

/// An attempt to run a job.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct AttemptView {
    /// The attempt's number, from 1.
    pub number: u32,
    /// The attempt's Slurm id.
    pub slurm_job_id: Option<String>,
    /// The attempt's unique job name in Slurm.
    pub slurm_job_name: String,
    /// The attempt's state as Slurm reports it.
    pub slurm_state: Option<String>,
    /// The exit code of the batch script.
    pub exit_code: Option<u8>,
    /// The signal that ended the batch script; 0 for none.
    pub exit_signal: Option<u8>,
    /// The attempt's nodes, one by one.
    pub nodes: Vec<String>,
    /// Slurm's reason for its state.
    pub reason: Option<String>,
    /// The attempt's partition.
    pub partition: Option<String>,
    /// The image that was started if it is not the requested one, such as a converted file.
    pub image: Option<String>,
    /// Why the registry image was started although a converted file was requested.
    pub image_note: Option<String>,
    /// When the attempt was created, before anything was submitted.
    pub created_on: DateTime<Utc>,
    /// When Slurm accepted it.
    pub submitted_on: Option<DateTime<Utc>>,
    /// When it started to run.
    pub started_on: Option<DateTime<Utc>>,
    /// When it ended.
    pub ended_on: Option<DateTime<Utc>>,
    /// How often Slurm has requeued it after it had started.
    pub requeues: u32,
    /// The nodes that it was not allowed to use.
    pub excluded_nodes: Vec<String>,
    /// `done`, `error`, `canceled`, `paused` or `retried`; null while the attempt is not over.
    pub outcome: Option<String>,
    /// When the outcome was decided.
    pub concluded_on: Option<DateTime<Utc>>,
    /// Why the job was or was not retried.
    pub outcome_reason: Option<String>,
    /// The failure rule that decided the outcome.
    pub rule: Option<String>,
    /// The log line that the rule matched.
    pub matched_line: Option<String>,
}

/// The backend of this service.
#[derive(Debug, Clone, Copy, Serialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub(crate) enum BackendTypeView {
    /// Slurm.
    Slurm,
}

/// What a job's view shows beside the job itself.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Surroundings<'a> {
    pub(crate) cluster: Option<&'a Cluster>,
    pub(crate) freshness: Freshness,
    pub(crate) earlier: &'a [SlurmJobId],
}

impl JobSummary {
    pub(crate) fn new(job: &Job, around: Surroundings<'_>) -> Self {
        let (network_arch, action) = match &job.spec.work {
            Work::Tao { network_arch, action, .. } => {
                (Some(network_arch.to_string()), Some(action.to_string()))
            }
            Work::Command { .. } | Work::Components { .. } => (None, None),
        };
        let slurm_metadata = SlurmMetadataView {
            slurm_job_id: job.attempt.as_ref().and_then(|a| a.slurm_id).map(|id| id.to_string()),
            job_dir: match (&job.attempt, around.cluster) {
                (Some(attempt), _) => Some(attempt.job_dir.to_string()),
                (None, cluster) => cluster.map(|cluster| cluster.base_dir.to_string()),
            },
            retry_count: job.retry_count,
            failed_slurm_job_ids: around.earlier.iter().map(ToString::to_string).collect(),
        };
        Self {
            status: StatusView::new(job, around.freshness),
            owner: job.owner.to_string(),
            labels: texts(&job.spec.labels),
            image: job.spec.image.as_ref().map(ToString::to_string),
            network_arch,
            action,
            backend_details: BackendDetailsView {
                backend_type: BackendTypeView::Slurm,
                partition: job.spec.partitions.as_ref().map(ToString::to_string),
                cluster_name: job.cluster.to_string(),
                queue: QueueView::from(&job.spec.options),
                begin: job.spec.begin.map(|moment| moment.to_string()),
                deadline: job.spec.deadline.map(|moment| moment.to_string()),
                slurm_metadata,
            },
        }
    }
}

fn texts<K: ToString>(map: &BTreeMap<K, String>) -> BTreeMap<String, String> {
    map.iter().map(|(key, value)| (key.to_string(), value.clone())).collect()
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
            results: job.spec.results.iter().map(ResultRuleView::from).collect(),
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
            use_requeue: job.spec.use_requeue,
            warnings: around
                .cluster
                .map(|cluster| job.spec.warnings(cluster))
                .into_iter()
                .flatten()
                .map(WarningView::from)
                .chain(job.spec.notes.iter().map(WarningView::from))
                .collect(),
            traceparent: job.spec.trace.as_ref().map(ToString::to_string),
            timeout_minutes: job.spec.timeout_minutes.map(std::num::NonZeroU32::get),
            container: ContainerView {
                mounts: job.spec.mounts.iter().map(ToString::to_string).collect(),
                use_sqsh: job.spec.image_policy.use_sqsh,
                require_sqsh: job.spec.image_policy.require_sqsh,
                force_reconvert_latest: job.spec.image_policy.force_reconvert_latest,
            },
            attempt_details: job.attempt.as_ref().map(|attempt| AttemptView::new(attempt, &job.run)),
        }
    }
}

impl AttemptView {
    pub(crate) fn new(attempt: &Attempt, run: &Run) -> Self {
        let verdict = attempt.verdict.as_ref();
        Self {
            number: attempt.no.get(),
            slurm_job_id: attempt.slurm_id.map(|id| id.to_string()),
            slurm_job_name: attempt.token.to_string(),
            slurm_state: run.state.as_ref().map(ToString::to_string),
            exit_code: run.exit.map(|exit| exit.code),
            exit_signal: run.exit.map(|exit| exit.signal),
            nodes: run.nodes.as_deref().map(slurm::node_list::expand).unwrap_or_default(),
            reason: run.reason.clone(),
            partition: run.partition.clone(),
            image: attempt.image.as_ref().map(|launched| launched.image.to_string()),
            image_note: attempt.image.as_ref().and_then(|launched| launched.note.clone()),
            created_on: attempt.intended_at,
            submitted_on: attempt.submitted_at,
            started_on: run.started_at,
            ended_on: run.ended_at,
            requeues: run.requeues,
            excluded_nodes: attempt.excluded.iter().map(ToString::to_string).collect(),
            outcome: verdict.map(|verdict| verdict.outcome.to_string()),
            concluded_on: verdict.map(|verdict| verdict.at),
            outcome_reason: verdict.map(|verdict| verdict.why.clone()),
            rule: verdict.and_then(|verdict| verdict.rule.clone()),
            matched_line: verdict.and_then(|verdict| verdict.line.clone()),
        }
    }
}
