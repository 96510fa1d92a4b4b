//! `GET /jobs/{id}`: the whole job.

use axum::{Json, extract::State};

use crate::{
    auth::Caller,
    extract::{JobInPath, NoParameters, Query},
    problem::{Problem, problems},
    state::App,
    view::JobView,
};

problems!(Problems = SECURED, JobNotFound);

/// Read a job
///
/// Everything that is known of a job, without its secrets.
#[utoipa::path(
    get,
    path = "/jobs/{id}",
    tag = "jobs",
    operation_id = "get_job",
    params(("id" = domain::JobId, Path, description = "The job's id.")),
    security(("bearer" = [])),
    responses((status = 200, description = "The job.", body = JobView), Problems)
)]
pub(crate) async fn get_job(
    State(app): State<App>,
    caller: Caller,
    JobInPath(id): JobInPath,
    Query(NoParameters): Query<NoParameters>,
) -> Result<Json<JobView>, Problem> {
    let job = super::find(&app, &caller, id).await?;
    Ok(Json(super::whole(&app, &job).await?))
}
