//! `POST /jobs/{id}/resume`: a paused job goes on, under the same id.

use axum::{extract::State, http::StatusCode, response::Response};
use domain::Status;
use persistence::Requested;
use serde_json::Value;

use super::{once, request_hash};
use crate::{
    auth::Caller,
    http::extract::{IdempotencyKey, JobInPath, NoParameters, Query, no_such_job},
    problem::{Kind, Problem, problems},
    state::App,
    view::StatusView,
};

problems!(Problems = SECURED, JobNotFound, WrongState, InvalidHeader, IdempotencyKeyReused);

/// Resume a paused job
///
/// Sends the job to the cluster again, as a new attempt under the same id. A training goes on from its newest
/// checkpoint. May be repeated until the new attempt is in Slurm.
#[utoipa::path(
    post,
    path = "/jobs/{id}/resume",
    tag = "jobs",
    operation_id = "resume_job",
    params(("id" = domain::JobId, Path, description = "The job's id."), IdempotencyKey),
    security(("bearer" = ["write"])),
    responses(
        (status = 202, description = "It will go on.", body = StatusView,
            headers(("Idempotency-Replayed" = bool, description = "`true` when an earlier request with this \
                `Idempotency-Key` did it; the answer shows how the job stands now."))),
        Problems
    )
)]
pub(crate) async fn resume_job(
    State(app): State<App>,
    caller: Caller,
    JobInPath(id): JobInPath,
    Query(NoParameters): Query<NoParameters>,
    key: IdempotencyKey,
) -> Result<Response, Problem> {
    let once = key.once(&app, &caller, format!("resume_job {id}"), request_hash::of(&Value::Null));
    if let Some(answer) = once::wish_replayed(&app, &caller, once.as_ref()).await? {
        return Ok(answer);
    }
    let taken = app.store.request_resume(id, &caller.viewer(), once.as_ref(), app.clock.now()).await?;
    // Perhaps the same request came at the same time, and was first.
    if let Requested::Stays(_) = &taken
        && let Some(answer) = once::wish_replayed(&app, &caller, once.as_ref()).await?
    {
        return Ok(answer);
    }
    let job = match taken {
        Requested::Taken(job) => job,
        Requested::Stays(job) if job.status == Status::Resuming => job,
        Requested::Stays(job) => {
            let detail = match job.status {
                Status::Pausing => "The job is still Pausing; resume it once it is Paused.".to_owned(),
                // Paused by Slurm, not by us: there is nothing that we could send again.
                Status::Paused => "Slurm has suspended the job, and only Slurm can let it go on.".to_owned(),
                status => format!("The job is {status}; only a Paused one can be resumed."),
            };
            return Err(Problem::new(Kind::WrongState, detail));
        }
        Requested::NoJob => return Err(no_such_job(id)),
    };
    super::answered(&app, StatusCode::ACCEPTED, &job).await
}
