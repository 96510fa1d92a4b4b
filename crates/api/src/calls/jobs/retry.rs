//! `POST /jobs/{id}/retry`: a job that failed or was canceled goes again, under the same id.

use axum::{extract::State, http::StatusCode, response::Response};
use domain::RetryRequest;
use persistence::Requested;

use super::{once, request_hash};
use crate::{
    auth::Caller,
    calls::clusters::{gone, is_there},
    http::extract::{BodyIfAny, IdempotencyKey, JobInPath, NoParameters, Query, no_such_job},
    problem::{Kind, Problem, problems},
    state::App,
    view::StatusView,
};

problems!(
    Problems = SECURED,
    JobNotFound,
    InvalidHeader,
    IdempotencyKeyReused,
    WrongState,
    ClusterGone,
    ClusterUnusable,
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
    params(("id" = domain::JobId, Path, description = "The job's id."), IdempotencyKey),
    request_body = Option<RetryRequest>,
    security(("bearer" = ["write"])),
    responses(
        (status = 202, description = "It will be sent again.", body = StatusView,
            headers(("Idempotency-Replayed" = bool, description = "`true` when an earlier request with this \
                `Idempotency-Key` did it; the answer shows how the job stands now."))),
        Problems
    )
)]
pub(crate) async fn retry_job(
    State(app): State<App>,
    caller: Caller,
    JobInPath(id): JobInPath,
    Query(NoParameters): Query<NoParameters>,
    key: IdempotencyKey,
    BodyIfAny(sent): BodyIfAny<RetryRequest>,
) -> Result<Response, Problem> {
    let (document, request) = sent.map_or_else(Default::default, |sent| (sent.document, sent.value));
    let once = key.once(&app, &caller, format!("retry_job {id}"), request_hash::of(&document));
    if let Some(answer) = once::wish_replayed(&app, &caller, once.as_ref()).await? {
        return Ok(answer);
    }
    let job = super::find(&app, &caller, id).await?;
    // Of two equal requests at the same time the second may come here once the first has done it.
    let refused = async |status| {
        let answer = once::wish_replayed(&app, &caller, once.as_ref()).await?;
        answer.ok_or_else(|| wrong_state(status))
    };
    if !job.can_be_retried() {
        return refused(job.status).await;
    }
    let incarnation = is_there(&app, &job)?;
    let secrets = request.secrets_for(&job.spec).map_err(Problem::fields)?;
    let (viewer, now) = (caller.viewer(), app.clock.now());
    let taken = app.store.request_retry(id, &viewer, &secrets, once.as_ref(), incarnation, now).await?;
    let job = match taken {
        Requested::Taken(job) => job,
        // Nothing but its cluster can have been in the way.
        Requested::Stays(job) if job.can_be_retried() => return Err(gone(&job.cluster)),
        Requested::Stays(job) => return refused(job.status).await,
        Requested::NoJob => return Err(no_such_job(id)),
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
