//! `GET /jobs/{id}/status`: the small one, asked for every few seconds by hundreds.

use axum::{Json, extract::State, http::HeaderMap, response::Response};

use super::wait::{self, Patience};
use crate::{
    auth::Caller,
    http::extract::{JobInPath, Query},
    problem::{Problem, problems},
    state::App,
    view::StatusView,
};

problems!(Problems = SECURED, JobNotFound, WatchersBusy);

/// Read a job's status
///
/// Where a job stands, from the database: asking costs the cluster nothing. Send the answer's `ETag` back as
/// `If-None-Match` to learn cheaply that nothing has changed; with `wait` as well, to be told when something has. Who
/// always sends the newest `ETag` and a `wait` misses no change but those that another one followed at once.
#[utoipa::path(
    get,
    path = "/jobs/{id}/status",
    tag = "jobs",
    operation_id = "get_job_status",
    params(
        ("id" = domain::JobId, Path, description = "The job's id."),
        Patience,
        ("If-None-Match" = Option<String>, Header, description = "The `ETag` of an earlier answer.")
    ),
    security(("bearer" = ["read"])),
    responses(
        (status = 200, description = "The status.", body = StatusView,
            headers(
                ("ETag" = String, description = "Changes when the status does."),
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
pub(crate) async fn get_job_status(
    State(app): State<App>,
    caller: Caller,
    JobInPath(id): JobInPath,
    Query(patience): Query<Patience>,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    let job = wait::find(&app, &caller, id, &patience, &headers).await?;
    let status = super::status_of(&app, &job).await?;
    let etag = status.etag();
    Ok(wait::tagged(&headers, &etag, Json(status)))
}
