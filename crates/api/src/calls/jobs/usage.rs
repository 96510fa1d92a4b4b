//! `GET /jobs/{id}/usage`: what a job uses of its GPUs, processors and memory.

use axum::Json;
use domain::{Held, notes};
use utoipa::IntoParams;

use super::{metrics::task_of, tasks::LAST_TASK};
use crate::{
    http::extract::{Call, FromQuery, JobInPath, Parameters},
    problem::{Problem, problems},
    view::{MeasuredView, UsageView},
};

problems!(Problems = SECURED, JobNotFound, TaskNotFound, AttemptNotFound);

/// Selects a run.
#[derive(Debug, IntoParams)]
#[into_params(parameter_in = Query)]
pub(crate) struct UsageQuery {
    /// The task of a job with an array, which must be given.
    #[param(value_type = Option<u32>, maximum = 4_000_000)]
    task: Option<u32>,
    /// Only this attempt, counted from 1. Default: the newest that has measured its use, and all that Slurm accounts for.
    #[param(value_type = Option<u32>, minimum = 1, maximum = 2_147_483_647)]
    attempt: Option<u32>,
}

impl FromQuery for UsageQuery {
    const KNOWN: &'static [&'static str] = &["task", "attempt"];

    fn from_query(parameters: &Parameters) -> Result<Self, Problem> {
        Ok(Self {
            task: parameters.number("task", 0..=LAST_TASK)?,
            attempt: parameters.number("attempt", 1..=i32::MAX.unsigned_abs())?,
        })
    }
}

/// Read what a job uses
///
/// Returns what the job measures of its GPUs, processors and memory while it runs (`usage_seconds` of the cluster), what Slurm accounts for
/// when it has ended, and what these figures say.
#[utoipa::path(
    get,
    path = "/jobs/{id}/usage",
    params(("id" = domain::JobId, Path, description = "The job's id."), UsageQuery),
    security(("bearer" = ["read"])),
    responses((status = 200, description = "What the job uses.", body = UsageView), Problems)
)]
pub(crate) async fn get_job_usage(
    Call(app, caller, JobInPath(id), query): Call<JobInPath, UsageQuery>,
) -> Result<Json<UsageView>, Problem> {
    let job = super::find(&app, &caller, id).await?;
    let task = task_of(&job, query.task)?;
    super::newest_attempt(&job, query.attempt)?;
    let measured = app.store.usage(id, task, query.attempt).await?;
    let accounted = app.store.job_account(id, query.attempt).await?;
    let resources = &job.spec.resources;
    // A job on whole nodes holds all their processors, however many these are.
    let held = (!resources.exclusive).then(|| Held {
        cpus: resources
            .nodes
            .saturating_mul(resources.tasks_per_node)
            .saturating_mul(resources.cpus_per_task),
    });
    Ok(Json(UsageView {
        job_id: id,
        task,
        notes: measured.as_ref().map_or_else(Vec::new, |(_, usage)| notes(usage, held)),
        measured: measured.map(|(attempt, usage)| MeasuredView::new(attempt.get(), &usage)),
        accounted: accounted.into(),
    }))
}
