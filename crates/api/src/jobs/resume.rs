//! `POST /jobs/{id}/resume`: a paused job goes on, under the same id.

use axum::{extract::State, http::StatusCode, response::Response};
use domain::Status;
use persistence::Wished;

use crate::{
    auth::Caller,
    extract::{JobInPath, NoParameters, Query, no_such_job},
    problem::{Kind, Problem, problems},
    state::App,
    view::StatusView,
};

problems!(Problems = SECURED, JobNotFound, WrongState);

/// Resume a paused job
///
/// Sends the job to the cluster again, as a new attempt under the same id. A training goes on from its newest
/// checkpoint. May be repeated until the new attempt is in Slurm.
#[utoipa::path(
    post,
    path = "/jobs/{id}/resume",
    tag = "jobs",
    operation_id = "resume_job",
    params(("id" = domain::JobId, Path, description = "The job's id.")),
    security(("bearer" = ["write"])),
    responses(
        (status = 202, description = "It will go on.", body = StatusView),
        Problems
    )
)]
pub(crate) async fn resume_job(
    State(app): State<App>,
    caller: Caller,
    JobInPath(id): JobInPath,
    Query(NoParameters): Query<NoParameters>,
) -> Result<Response, Problem> {
    let job = match app.store.request_resume(id, &caller.viewer(), app.clock.now()).await? {
        Wished::Taken(job) => job,
        Wished::Stays(job) if job.status == Status::Resuming => job,
        Wished::Stays(job) => {
            let detail = match job.status {
                Status::Pausing => "The job is still Pausing; resume it once it is Paused.".to_owned(),
                // Paused by Slurm, not by us: there is nothing that we could send again.
                Status::Paused => "Slurm has suspended the job, and only Slurm can let it go on.".to_owned(),
                status => format!("The job is {status}; only a Paused one can be resumed."),
            };
            return Err(Problem::new(Kind::WrongState, detail));
        }
        Wished::NoJob => return Err(no_such_job(id)),
    };
    super::answered(&app, StatusCode::ACCEPTED, &job).await
}
