//! `POST /jobs/{id}/cancel`: a wish, stored before it is answered. The worker carries it out.

use axum::{extract::State, http::StatusCode, response::Response};
use persistence::Requested;

use crate::{
    auth::Caller,
    http::extract::{JobInPath, NoParameters, Query, no_such_job},
    problem::{Problem, problems},
    state::App,
    view::StatusView,
};

problems!(Problems = SECURED, JobNotFound);

/// Cancel a job
///
/// May be repeated. The job is `Canceled` once the cluster confirms it; until then it is `Canceling`.
#[utoipa::path(
    post,
    path = "/jobs/{id}/cancel",
    tag = "jobs",
    operation_id = "cancel_job",
    params(("id" = domain::JobId, Path, description = "The job's id.")),
    security(("bearer" = ["write"])),
    responses(
        (status = 202, description = "It will be canceled.", body = StatusView),
        (status = 200, description = "It had ended already, and stays as it is.", body = StatusView),
        Problems
    )
)]
pub(crate) async fn cancel_job(
    State(app): State<App>,
    caller: Caller,
    JobInPath(id): JobInPath,
    Query(NoParameters): Query<NoParameters>,
) -> Result<Response, Problem> {
    let job = match app.store.request_cancel(id, &caller.viewer(), app.clock.now()).await? {
        // One that is being canceled already stays as it is, too.
        Requested::Taken(job) | Requested::Stays(job) => job,
        Requested::NoJob => return Err(no_such_job(id)),
    };
    let status = if job.status.is_final() { StatusCode::OK } else { StatusCode::ACCEPTED };
    super::answered(&app, status, &job).await
}
