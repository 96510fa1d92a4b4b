//! `GET /jobs/{id}`: the whole job.

use axum::{Json, extract::State, http::HeaderMap, response::Response};

use super::wait::{self, Patience};
use crate::{
    auth::Caller,
    http::extract::{JobInPath, Query},
    problem::{Problem, problems},
    state::App,
    view::JobView,
};

problems!(Problems = SECURED, JobNotFound, WatchersBusy);

/// Read a job
///
/// Everything that is known of a job, without its secrets. `ETag` and `wait` are those of its status.
#[utoipa::path(
    get,
    path = "/jobs/{id}",
    tag = "jobs",
    operation_id = "get_job",
    params(
        ("id" = domain::JobId, Path, description = "The job's id."),
        Patience,
        ("If-None-Match" = Option<String>, Header, description = "The `ETag` of an earlier answer.")
    ),
    security(("bearer" = ["read"])),
    responses(
        (status = 200, description = "The job.", body = JobView,
            headers(
                ("ETag" = String, description = "Changes when the job does."),
                ("Cache-Control" = String, description = "`private, no-cache`.")
            )),
        (status = 304, description = "Nothing has changed since the answer with this `ETag`.",
            headers(
                ("ETag" = String, description = "The same."),
                ("Cache-Control" = String, description = "`private, no-cache`.")
            )),
        Problems
    )
)]
pub(crate) async fn get_job(
    State(app): State<App>,
    caller: Caller,
    JobInPath(id): JobInPath,
    Query(patience): Query<Patience>,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    let job = wait::find(&app, &caller, id, &patience, &headers).await?;
    let whole = super::whole(&app, &job).await?;
    let etag = whole.summary.status.etag();
    Ok(wait::tagged(&headers, &etag, Json(whole)))
}
