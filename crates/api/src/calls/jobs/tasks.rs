//! The tasks of a job.

use std::{collections::HashMap, sync::Arc};

use axum::{
    Json,
    http::Uri,
    response::{IntoResponse, Response},
};
use domain::{Job, JobId, NewestRun, TaskSelection, TaskStatus, Violation};
use slurm::TaskSet;
use strum::IntoEnumIterator;
use utoipa::IntoParams;

use super::find;
use crate::{
    auth::Caller,
    http::{
        extract::{Call, FromQuery, JobInPath, LISTED, Parameters, TaskInPath},
        link,
    },
    problem::{Kind, Problem, problems},
    state::App,
    view::{TaskListView, TaskView},
};

problems!(Problems = SECURED, JobNotFound);
problems!(TaskProblems = SECURED, JobNotFound, TaskNotFound);

/// Tasks have no greater numbers.
pub(super) const LAST_TASK: u32 = 4_000_000;

/// Selects tasks.
#[derive(Debug, IntoParams)]
#[into_params(parameter_in = Query)]
pub(crate) struct TaskFilter {
    /// Tasks in this state.
    #[param(value_type = Option<TaskStatus>)]
    status: Option<TaskStatus>,
    /// The maximum number of tasks.
    #[param(value_type = Option<u32>, minimum = 1, maximum = 200, default = 50)]
    limit: u32,
    /// The `next_page_token` of the previous page. Repeat the filter with it.
    #[param(value_type = Option<String>, pattern = "^[0-9]{1,7}$")]
    page_token: Option<u32>,
}

impl FromQuery for TaskFilter {
    const KNOWN: &'static [&'static str] = &["status", "limit", "page_token"];

    fn from_query(parameters: &Parameters) -> Result<Self, Problem> {
        let statuses = TaskStatus::iter().map(<&str>::from).collect::<Vec<_>>().join(", ");
        Ok(Self {
            status: parameters.parse("status", format_args!("one of {statuses}"))?,
            limit: parameters.limit(LISTED)?,
            page_token: parameters
                .parse("page_token", "the next_page_token of an earlier answer, unchanged")?,
        })
    }
}

/// List a job's tasks
///
/// Returns the tasks of a job's array by their numbers. A job without an array has one task, number 0.
#[utoipa::path(
    get,
    path = "/jobs/{id}/tasks",
    params(("id" = domain::JobId, Path, description = "The job's id."), TaskFilter),
    security(("bearer" = ["read"])),
    responses(
        (status = 200, description = "A page of tasks.", body = TaskListView,
            headers(("Link" = String, description = "The next page (`rel=\"next\"`) if there is one."))),
        Problems
    )
)]
pub(crate) async fn list_tasks(
    Call(app, caller, JobInPath(id), filter): Call<JobInPath, TaskFilter>,
    uri: Uri,
) -> Result<Response, Problem> {
    let job = find(&app, &caller, id).await?;
    let limit = usize::try_from(filter.limit).unwrap_or(usize::MAX);
    let all = job.spec.tasks();
    let later = all.iter().filter(|task| filter.page_token.is_none_or(|after| *task > after));
    let mut page: Vec<u32> = match filter.status {
        None => later.take(limit + 1).collect(),
        Some(status) => {
            let newest = app.store.newest_states(id).await?;
            later.filter(|task| job.task_status(*task, newest.get(task)) == status).take(limit + 1).collect()
        }
    };
    let more = page.len() > limit;
    page.truncate(limit);
    let runs = app.store.newest_runs(id, &page).await?;
    let tasks = page.iter().map(|task| TaskView::new(&job, *task, runs.get(task))).collect();
    let next = page.last().filter(|_| more).map(ToString::to_string);
    let link = next.as_deref().and_then(|token| link::next(&uri, "page_token", token));
    Ok((link, Json(TaskListView { tasks, next_page_token: next })).into_response())
}

/// Get a task
///
/// Returns one task of a job's array. A job without an array has one task, number 0.
#[utoipa::path(
    get,
    path = "/jobs/{id}/tasks/{task}",
    params(
        ("id" = domain::JobId, Path, description = "The job's id."),
        ("task" = u32, Path, description = "The task's number.", maximum = 4_000_000)
    ),
    security(("bearer" = ["read"])),
    responses((status = 200, description = "The task.", body = TaskView), TaskProblems)
)]
pub(crate) async fn get_task(
    Call(app, caller, TaskInPath(id, task), _): Call<TaskInPath>,
) -> Result<Json<TaskView>, Problem> {
    let job = find(&app, &caller, id).await?;
    if !job.spec.tasks().contains(task) {
        return Err(no_such_task(&job, task));
    }
    let runs = app.store.newest_runs(id, &[task]).await?;
    Ok(Json(TaskView::new(&job, task, runs.get(&task))))
}

pub(crate) fn no_such_task(job: &Job, task: u32) -> Problem {
    Problem::new(Kind::TaskNotFound, format!("The job has no task {task}. Its tasks: {}.", job.spec.tasks()))
}

/// The job, what its newest runs say, and the tasks that the caller selects.
pub(super) async fn selected(
    app: &App,
    caller: &Caller,
    id: JobId,
    selection: &TaskSelection,
) -> Result<(Arc<Job>, HashMap<u32, NewestRun>, TaskSet), Problem> {
    let job = find(app, caller, id).await?;
    let newest = app.store.newest_states(id).await?;
    let tasks = job.selected(selection, &newest).map_err(|beyond| {
        let detail = format!("has {beyond}; the job's tasks are {}", job.spec.tasks());
        Problem::fields(vec![Violation::new("/tasks", "out_of_range", detail)])
    })?;
    Ok((job, newest, tasks))
}
