//! The calls that read a job, its attempts and its script.

use axum::{
    Json,
    http::{HeaderMap, header},
    response::{IntoResponse, Response},
};
use utoipa::{IntoParams, IntoResponses};

use super::wait;
use crate::{
    http::extract::{Call, FromQuery, JobInPath, Parameters, Patience},
    problem::{Kind, Problem, problems},
    view::{AttemptListView, AttemptView, JobView, StatusView},
};

/// The job has not changed since the answer with this `ETag`.
#[derive(IntoResponses)]
#[response(
    status = 304,
    headers(
        ("ETag" = String, description = "The same value."),
        ("Cache-Control" = String, description = "`private, no-cache`.")
    )
)]
struct NotModified;

problems!(ReadProblems = SECURED, JobNotFound, WatchersBusy);

/// Read a job
///
/// Returns everything about a job except its secrets. `ETag` and `wait` work as for the job's status.
#[utoipa::path(
    get,
    path = "/jobs/{id}",
    params(
        ("id" = domain::JobId, Path, description = "The job's id."),
        Patience,
        ("If-None-Match" = Option<String>, Header, description = "The `ETag` of an earlier answer.")
    ),
    security(("bearer" = ["read"])),
    responses(
        (status = 200, description = "The job.", body = JobView,
            headers(
                ("ETag" = String, description = "Changes with the job."),
                ("Cache-Control" = String, description = "`private, no-cache`.")
            )),
        NotModified,
        ReadProblems
    )
)]
pub(crate) async fn get_job(
    Call(app, caller, JobInPath(id), patience): Call<JobInPath, Patience>,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    let job = wait::find(&app, &caller, id, &patience, &headers).await?;
    let whole = super::whole(&app, &job).await?;
    let etag = whole.summary.status.etag();
    Ok(wait::tagged(&headers, &etag, Json(whole)))
}

/// Read a job's status
///
/// Returns the job's status from the database, at no cost to the cluster. Send the answer's `ETag` as `If-None-Match` to get a
/// cheap 304 while nothing has changed; add `wait` to get an answer at the next change. A client that always sends the newest
/// `ETag` and a `wait` misses only a change that another one follows at once.
#[utoipa::path(
    get,
    path = "/jobs/{id}/status",
    params(
        ("id" = domain::JobId, Path, description = "The job's id."),
        Patience,
        ("If-None-Match" = Option<String>, Header, description = "The `ETag` of an earlier answer.")
    ),
    security(("bearer" = ["read"])),
    responses(
        (status = 200, description = "The status.", body = StatusView,
            headers(
                ("ETag" = String, description = "Changes with the status."),
                ("Cache-Control" = String, description = "`private, no-cache`.")
            )),
        NotModified,
        ReadProblems
    )
)]
pub(crate) async fn get_job_status(
    Call(app, caller, JobInPath(id), patience): Call<JobInPath, Patience>,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    let job = wait::find(&app, &caller, id, &patience, &headers).await?;
    let status = super::status_of(&app, &job).await?;
    let etag = status.etag();
    Ok(wait::tagged(&headers, &etag, Json(status)))
}

problems!(AttemptProblems = SECURED, JobNotFound);

/// List a job's attempts
///
/// Returns every attempt to run the job, oldest first, with its outcome and why the job was or was not retried.
#[utoipa::path(
    get,
    path = "/jobs/{id}/attempts",
    params(("id" = domain::JobId, Path, description = "The job's id.")),
    security(("bearer" = ["read"])),
    responses((status = 200, description = "The attempts.", body = AttemptListView), AttemptProblems)
)]
pub(crate) async fn get_job_attempts(
    Call(app, caller, JobInPath(id), _): Call<JobInPath>,
) -> Result<Json<AttemptListView>, Problem> {
    let job = super::find(&app, &caller, id).await?;
    let attempts = app.store.attempts(job.id).await?;
    Ok(Json(AttemptListView {
        job_id: job.id,
        attempts: attempts.iter().map(|(attempt, run)| AttemptView::new(attempt, run)).collect(),
    }))
}

problems!(ScriptProblems = SECURED, JobNotFound, AttemptNotFound, NoScriptYet);

/// Selects a script.
#[derive(Debug, IntoParams)]
#[into_params(parameter_in = Query)]
pub(crate) struct Which {
    /// The attempt, counted from 1. Default: the newest submitted one.
    #[param(value_type = Option<u32>, minimum = 1)]
    attempt: Option<u32>,
}

impl FromQuery for Which {
    const KNOWN: &'static [&'static str] = &["attempt"];

    fn from_query(parameters: &Parameters) -> Result<Self, Problem> {
        Ok(Self { attempt: parameters.number("attempt", 1..=u32::MAX)? })
    }
}

/// Read a job's batch script
///
/// Returns the script as it was submitted to Slurm, byte for byte.
#[utoipa::path(
    get,
    path = "/jobs/{id}/script",
    params(("id" = domain::JobId, Path, description = "The job's id."), Which),
    security(("bearer" = ["read"])),
    responses(
        (status = 200, description = "The script.", content_type = "text/plain", body = String,
            headers(
                ("X-Content-Type-Options" = String, description = "`nosniff`: browsers must not interpret the content."),
                ("Cache-Control" = String, description = "`private, no-cache`.")
            )),
        ScriptProblems
    )
)]
pub(crate) async fn get_job_script(
    Call(app, caller, JobInPath(id), which): Call<JobInPath, Which>,
) -> Result<Response, Problem> {
    let job = super::find(&app, &caller, id).await?;
    super::newest_attempt(&job, which.attempt)?;
    let Some(script) = app.store.script(job.id, which.attempt).await? else {
        let detail = "The job has not been submitted to Slurm yet, so it has no script.";
        return Err(Problem::new(Kind::NoScriptYet, detail));
    };
    let headers = [
        (header::CONTENT_TYPE, "text/plain; charset=utf-8"),
        // Scripts contain arbitrary text; browsers must not render it.
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (header::CACHE_CONTROL, "private, no-cache"),
    ];
    Ok((headers, script).into_response())
}
