//! The calls that change all jobs of a pipeline.

use std::collections::{BTreeMap, HashSet};

use axum::{
    Json,
    http::StatusCode,
    response::{IntoResponse, Response},
};
use domain::{ArrayState, Job, RetryRequest, Secrets, Status, Violation, pointer};
use persistence::Retry;
use serde::Deserialize;
use utoipa::ToSchema;
use uuid::Uuid;

use super::PipelineInPath;
use crate::{
    auth::Caller,
    calls::{clusters::is_there, jobs::control::retried_array},
    http::extract::{BodyIfAny, Call},
    problem::{Kind, Problem, problems},
    state::App,
    view::PipelineView,
};

problems!(CancelProblems = SECURED, PipelineNotFound);

/// Cancel a pipeline
///
/// Cancels all its jobs that have not ended, also those that were to come after a failure. The call can be repeated.
#[utoipa::path(
    post,
    path = "/pipelines/{id}/cancel",
    params(("id" = Uuid, Path, description = "The pipeline's id.")),
    security(("bearer" = ["write"])),
    responses(
        (status = 202, description = "Its jobs will be canceled.", body = PipelineView),
        (status = 200, description = "All its jobs had ended; nothing changed.", body = PipelineView),
        CancelProblems
    )
)]
pub(crate) async fn cancel_pipeline(
    Call(app, caller, PipelineInPath(id), _): Call<PipelineInPath>,
) -> Result<Response, Problem> {
    let (pipeline, before) = super::find(&app, &caller, id).await?;
    let ended = before.iter().all(|job| job.status.is_final());
    if !ended {
        let canceled = app.store.cancel_pipeline(id, app.clock.now()).await?;
        tracing::info!(pipeline.id = %id, jobs = canceled, "pipeline canceled by its owner");
    }
    let jobs = app.store.pipeline_jobs(id).await?;
    let status = if ended { StatusCode::OK } else { StatusCode::ACCEPTED };
    Ok((status, Json(PipelineView::new(&pipeline, &jobs))).into_response())
}

/// The secrets of a pipeline that is retried.
#[derive(Debug, Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct PipelineRetryRequest {
    /// By the names of the jobs that have secrets and go again.
    #[serde(default)]
    jobs: BTreeMap<String, RetryRequest>,
}

problems!(RetryProblems = SECURED | BODY, PipelineNotFound, WrongState, ClusterGone, ClusterUnusable);

/// Retry a pipeline
///
/// Submits its jobs in `Error` or `Canceled` again, each with a full retry budget; the jobs that were skipped because of them wait
/// again. The service deleted the secrets of jobs when they ended, so those with secrets need them again in the body.
#[utoipa::path(
    post,
    path = "/pipelines/{id}/retry",
    params(("id" = Uuid, Path, description = "The pipeline's id.")),
    request_body = Option<PipelineRetryRequest>,
    security(("bearer" = ["write"])),
    responses((status = 202, description = "These jobs go again.", body = PipelineView), RetryProblems)
)]
pub(crate) async fn retry_pipeline(
    Call(app, caller, PipelineInPath(id), _): Call<PipelineInPath>,
    BodyIfAny(sent): BodyIfAny<PipelineRetryRequest>,
) -> Result<Response, Problem> {
    let (pipeline, jobs) = super::find(&app, &caller, id).await?;
    let request = sent.map(|sent| sent.value).unwrap_or_default();
    let again = prepared(&app, &caller, &jobs, request).await?;
    // Those that have run do not wait again, and go before the jobs that they need: the retry of such a job would open them without
    // the tasks that failed.
    let (ran, others): (Vec<_>, Vec<_>) = again.into_iter().partition(|again| again.job.started_at.is_some());
    for Again { job, secrets, incarnation, array } in ran.into_iter().rev().chain(others) {
        let retry = Retry { secrets: &secrets, incarnation, array: array.as_ref() };
        // A job that was retried meanwhile is left as it is.
        app.store.request_retry(job.id, &caller.viewer(), &retry, None, app.clock.now()).await?;
    }
    tracing::info!(pipeline.id = %id, "pipeline retried by its owner");
    let jobs = app.store.pipeline_jobs(id).await?;
    Ok((StatusCode::ACCEPTED, Json(PipelineView::new(&pipeline, &jobs))).into_response())
}

/// A job that goes again.
struct Again<'a> {
    job: &'a Job,
    secrets: Secrets,
    incarnation: Option<i64>,
    array: Option<ArrayState>,
}

/// The jobs that go again, each after those that it needs, so that none looks at one that has not been asked yet.
async fn prepared<'a>(
    app: &App,
    caller: &Caller,
    jobs: &'a [Job],
    mut request: PipelineRetryRequest,
) -> Result<Vec<Again<'a>>, Problem> {
    let (mut again, mut faults) = (Vec::new(), Vec::new());
    for job in to_retry(jobs) {
        let name = job.spec.pipeline.as_ref().map(|member| member.name.to_string()).unwrap_or_default();
        let given = request.jobs.remove(&name).unwrap_or_default();
        if given.tasks.is_some() {
            let detail = "is for a single job; all tasks that are not done go again";
            faults.push(Violation::new(format!("{}/tasks", pointer("/jobs", &name)), "unsupported", detail));
        }
        match given.secrets_for(&job.spec) {
            Ok(secrets) => {
                let (incarnation, array) =
                    (is_there(app, job)?, retried_array(app, caller, job, None).await?);
                again.push(Again { job, secrets, incarnation, array });
            }
            Err(missing) => faults.extend(missing.into_iter().map(|fault| Violation {
                pointer: format!("{}{}", pointer("/jobs", &name), fault.pointer),
                ..fault
            })),
        }
    }
    faults.extend(request.jobs.keys().map(|name| {
        let detail = "no job of this name is retried with secrets";
        Violation::new(pointer("/jobs", name), "unknown_job", detail)
    }));
    if !faults.is_empty() {
        return Err(Problem::fields(faults));
    }
    if again.is_empty() {
        return Err(Problem::new(Kind::WrongState, "No job of the pipeline has failed or was canceled."));
    }
    Ok(again)
}

/// The jobs that have failed or were canceled or skipped because of a job outside the pipeline, and those with secrets that were skipped
/// because of them. The store opens the other skipped ones again.
fn to_retry(jobs: &[Job]) -> Vec<&Job> {
    let members: HashSet<Uuid> = jobs.iter().map(|job| job.id.get()).collect();
    let mut goes: HashSet<Uuid> = HashSet::new();
    let mut again = Vec::new();
    for job in jobs {
        let has_secrets = job.spec.has_secrets();
        let follows = job.spec.needs.iter().any(|need| goes.contains(&need.job));
        let is_outside = job.spec.needs.iter().any(|need| !members.contains(&need.job));
        let failed =
            matches!(job.status, Status::Error | Status::Canceled) && (!job.is_skipped || is_outside);
        if job.can_be_retried() && (failed || follows) {
            goes.insert(job.id.get());
            if failed || has_secrets {
                again.push(job);
            }
        }
    }
    again
}
