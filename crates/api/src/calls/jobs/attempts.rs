//! `GET /jobs/{id}/attempts`: each time the job was sent to Slurm, and what became of it.

use axum::{Json, extract::State};

use crate::{
    auth::Caller,
    http::extract::{JobInPath, NoParameters, Query},
    problem::{Problem, problems},
    state::App,
    view::{AttemptListView, AttemptView},
};

problems!(Problems = SECURED, JobNotFound);

/// Read a job's attempts
///
/// Every attempt to run the job, oldest first, with how it ended and why it was or was not made again.
#[utoipa::path(
    get,
    path = "/jobs/{id}/attempts",
    tag = "jobs",
    operation_id = "get_job_attempts",
    params(("id" = domain::JobId, Path, description = "The job's id.")),
    security(("bearer" = ["read"])),
    responses((status = 200, description = "The attempts.", body = AttemptListView), Problems)
)]
pub(crate) async fn get_job_attempts(
    State(app): State<App>,
    caller: Caller,
    JobInPath(id): JobInPath,
    Query(NoParameters): Query<NoParameters>,
) -> Result<Json<AttemptListView>, Problem> {
    let job = super::find(&app, &caller, id).await?;
    let attempts = app.store.attempts(job.id).await?;
    Ok(Json(AttemptListView { job_id: job.id, attempts: attempts.iter().map(AttemptView::from).collect() }))
}
