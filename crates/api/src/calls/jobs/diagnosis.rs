//! `GET /jobs/{id}/diagnosis`: why a job failed.

use axum::Json;
use utoipa::IntoParams;

use super::tasks::{LAST_TASK, no_such_task};
use crate::{
    http::extract::{Call, FromQuery, JobInPath, Parameters},
    problem::{Kind, Problem, problems},
    view::DiagnosisView,
};

problems!(Problems = SECURED, JobNotFound, TaskNotFound, AttemptNotFound, NotFailed);

/// Selects a run.
#[derive(Debug, IntoParams)]
#[into_params(parameter_in = Query)]
pub(crate) struct DiagnosisQuery {
    /// The attempt, counted from 1. Default: the newest.
    #[param(value_type = Option<u32>, minimum = 1)]
    attempt: Option<u32>,
    /// The task of an array. Default: the first one whose newest run failed.
    #[param(value_type = Option<u32>, maximum = 4_000_000)]
    task: Option<u32>,
}

impl FromQuery for DiagnosisQuery {
    const KNOWN: &'static [&'static str] = &["attempt", "task"];

    fn from_query(parameters: &Parameters) -> Result<Self, Problem> {
        Ok(Self {
            attempt: parameters.number("attempt", 1..=u32::MAX)?,
            task: parameters.number("task", 0..=LAST_TASK)?,
        })
    }
}

/// Diagnose a failed job
///
/// Returns the first cause of the failure. When an attempt has failed, all its logs are searched for lines that look like errors. The
/// earliest line that is not the consequence of another is the cause: time-outs of NCCL, lost connections and the end of other
/// processes are consequences. If Slurm proves the cause, such as a failed node, there is no line.
#[utoipa::path(
    get,
    path = "/jobs/{id}/diagnosis",
    params(("id" = domain::JobId, Path, description = "The job's id."), DiagnosisQuery),
    security(("bearer" = ["read"])),
    responses((status = 200, description = "The diagnosis.", body = DiagnosisView), Problems)
)]
pub(crate) async fn get_job_diagnosis(
    Call(app, caller, JobInPath(id), query): Call<JobInPath, DiagnosisQuery>,
) -> Result<Json<DiagnosisView>, Problem> {
    let job = super::find(&app, &caller, id).await?;
    if let Some(task) = query.task.filter(|task| !job.spec.tasks().contains(*task)) {
        return Err(no_such_task(&job, task));
    }
    let newest = super::newest_attempt(&job, query.attempt)?;
    let run = app.store.run_failure(job.id, query.attempt, query.task).await?;
    if let Some(found) = run
        && let Some(failure) = found.failure
    {
        return Ok(Json(DiagnosisView::new(job.id, found.attempt, found.task, failure)));
    }
    let detail = match query.attempt.or(Some(newest).filter(|newest| *newest > 1)) {
        Some(attempt) => format!(
            "Attempt {attempt} has not failed: the job is {}. Earlier attempts have their own diagnoses, see `attempt`.",
            job.status
        ),
        None => format!("The job has no run that failed: the job is {}.", job.status),
    };
    Err(Problem::new(Kind::NotFailed, detail))
}
