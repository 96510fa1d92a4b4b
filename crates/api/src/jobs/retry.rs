//! `POST /jobs/{id}/retry`: a job that failed or was canceled goes again, under the same id.

use axum::{extract::State, http::StatusCode, response::Response};
use domain::RetryRequest;
use persistence::Wished;

use crate::{
    auth::Caller,
    extract::{BodyIfAny, JobInPath, NoParameters, Query, no_such_job},
    problem::{Kind, Problem, problems},
    state::App,
    view::StatusView,
};

problems!(
    Problems = SECURED,
    JobNotFound,
    WrongState,
    MalformedJson,
    BodyTooLarge,
    RequestTimeout,
    UnsupportedMediaType,
    InvalidRequest,
    TooDeep
);

/// Send a job again
///
/// A job in `Error` or `Canceled` goes again as a new attempt, with its whole budget of retries. What was secret of it
/// was erased when it ended, so a job that had secrets needs them again, in the body; others need no body.
#[utoipa::path(
    post,
    path = "/jobs/{id}/retry",
    tag = "jobs",
    operation_id = "retry_job",
    params(("id" = domain::JobId, Path, description = "The job's id.")),
    request_body = Option<RetryRequest>,
    security(("bearer" = ["write"])),
    responses(
        (status = 202, description = "It will be sent again.", body = StatusView),
        Problems
    )
)]
pub(crate) async fn retry_job(
    State(app): State<App>,
    caller: Caller,
    JobInPath(id): JobInPath,
    Query(NoParameters): Query<NoParameters>,
    BodyIfAny(request): BodyIfAny<RetryRequest>,
) -> Result<Response, Problem> {
    let job = super::find(&app, &caller, id).await?;
    if !job.may_be_sent_again() {
        return Err(wrong_state(job.status));
    }
    let secrets = request.unwrap_or_default().secrets_for(&job.spec).map_err(Problem::fields)?;
    let job = match app.store.request_retry(id, &caller.viewer(), &secrets, app.clock.now()).await? {
        Wished::Taken(job) => job,
        Wished::Stays(job) => return Err(wrong_state(job.status)),
        Wished::NoJob => return Err(no_such_job(id)),
    };
    tracing::info!(job.id = %job.id, "job sent again by its owner");
    super::answered(&app, StatusCode::ACCEPTED, &job).await
}

fn wrong_state(status: domain::Status) -> Problem {
    Problem::new(
        Kind::WrongState,
        format!("The job is {status}; only one that ended in Error or was Canceled can be sent again."),
    )
}
