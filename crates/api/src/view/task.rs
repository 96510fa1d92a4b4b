//! The tasks of a job.

// `ToSchema` recognizes this type by its name only.
use chrono::{DateTime, Utc};
use domain::{Job, JobArray, TaskStatus};
use persistence::TaskRun;
use serde::Serialize;
use serde_json::{Map, Value};
use utoipa::ToSchema;

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

/// A task of a job.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct TaskView {
    /// Its number.
    pub task: u32,
    /// Its state.
    pub status: TaskStatus,
    /// Its parameters.
    #[schema(value_type = Object)]
    pub parameters: Map<String, Value>,
    /// The attempt that carries it; null before one does, or while Slurm has reported nothing of the task.
    pub attempt: Option<u32>,
    /// Its id in Slurm; of an array, the array's with its index.
    #[schema(example = "4711_3")]
    pub slurm_job_id: Option<String>,
    /// Its state as Slurm reports it.
    pub slurm_state: Option<String>,
    /// Its nodes, one by one.
    pub nodes: Vec<String>,
    /// The exit code of its script.
    pub exit_code: Option<u8>,
    /// The signal that ended it.
    pub exit_signal: Option<u8>,
    /// How it ended, and why.
    pub message: Option<String>,
    /// When it started.
    pub started_on: Option<DateTime<Utc>>,
    /// When it ended.
    pub ended_on: Option<DateTime<Utc>>,
}

/// A page of tasks, by number.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct TaskListView {
    /// The tasks of this page.
    pub tasks: Vec<TaskView>,
    /// The value of `page_token` for the next page; null on the last one.
    pub next_page_token: Option<String>,
}

impl TaskView {
    /// `newest`: its newest run, if Slurm has reported one.
    pub(crate) fn new(job: &Job, task: u32, newest: Option<&TaskRun>) -> Self {
        let parameters = job.spec.array.iter().flat_map(|array| array.parameters(task));
        let parameters = parameters.map(|(key, value)| (key.to_string(), value.clone())).collect();
        let status = job.task_status(task, newest.map(|newest| &newest.state));
        let own = if job.array.is_none() { TaskRun::of(job) } else { None };
        // A run that another attempt has replaced says nothing about the task any more.
        let newest = own.as_ref().or(newest).filter(|newest| !newest.state.is_superseded);
        let run = newest.map(|newest| &newest.run);
        let slurm_job_id = |newest: &TaskRun| match (&job.array, newest.slurm_id?) {
            (Some(_), array) => Some(format!("{array}_{}", newest.index)),
            (None, id) => Some(id.to_string()),
        };
        Self {
            task,
            status,
            parameters,
            attempt: newest.map(|newest| newest.attempt.get()),
            slurm_job_id: newest.and_then(slurm_job_id),
            slurm_state: run.and_then(|run| run.state.as_ref()).map(ToString::to_string),
            nodes: run.and_then(|run| run.nodes.as_deref()).map(slurm::node_list::expand).unwrap_or_default(),
            exit_code: run.and_then(|run| run.exit).map(|exit| exit.code),
            exit_signal: run.and_then(|run| run.exit).map(|exit| exit.signal),
            message: newest.and_then(|newest| newest.message.clone()),
            started_on: run.and_then(|run| run.started_at),
            ended_on: run.and_then(|run| run.ended_at),
        }
    }
}
