//! `POST /jobs/{id}/pause`: off the cluster, with everything kept that the job needs to go on later.

use axum::{extract::State, http::StatusCode, response::Response};
use domain::DesiredState;
use persistence::Requested;

use crate::{
    auth::Caller,
    http::extract::{JobInPath, NoParameters, Query, no_such_job},
    problem::{Kind, Problem, problems},
    state::App,
    view::StatusView,
};

problems!(Problems = SECURED, JobNotFound, WrongState);

/// Pause a job
///
/// Takes the job off the cluster and keeps its results and checkpoints. It is `Pausing` until the cluster confirms it,
/// then `Paused` until it is resumed. May be repeated. A job that ends before the wish reaches it stays ended.
#[utoipa::path(
    post,
    path = "/jobs/{id}/pause",
    tag = "jobs",
    operation_id = "pause_job",
    params(("id" = domain::JobId, Path, description = "The job's id.")),
    security(("bearer" = ["write"])),
    responses(
        (status = 202, description = "It will be paused.", body = StatusView),
        (status = 200, description = "It is paused already, and stays as it is.", body = StatusView),
        Problems
    )
)]
pub(crate) async fn pause_job(
    State(app): State<App>,
    caller: Caller,
    JobInPath(id): JobInPath,
    Query(NoParameters): Query<NoParameters>,
) -> Result<Response, Problem> {
    let (status, job) = match app.store.request_pause(id, &caller.viewer(), app.clock.now()).await? {
        Requested::Taken(job) => (StatusCode::ACCEPTED, job),
        Requested::Stays(job) if job.phase == domain::Phase::Paused => (StatusCode::OK, job),
        Requested::Stays(job) if job.desired == DesiredState::Pause && !job.status.is_final() => {
            (StatusCode::ACCEPTED, job)
        }
        Requested::Stays(job) => {
            return Err(Problem::new(
                Kind::WrongState,
                format!("The job is {}; only one that waits or runs can be paused.", job.status),
            ));
        }
        Requested::NoJob => return Err(no_such_job(id)),
    };
    super::answered(&app, status, &job).await
}
