//! Answers to requests that came before, under the same `Idempotency-Key`.

use axum::{
    http::{HeaderName, HeaderValue, StatusCode},
    response::Response,
};
use domain::Job;
use persistence::{Known, Once};

use crate::{
    auth::Caller,
    problem::{Kind, Problem},
    state::App,
};

const REPLAYED: HeaderName = HeaderName::from_static("idempotency-replayed");

/// The job that the answer to the same request was about, as it is now, and that answer's status; none when there was no
/// such request.
pub(super) async fn answered(
    app: &App,
    caller: &Caller,
    once: &Once,
) -> Result<Option<(Job, StatusCode)>, Problem> {
    let (id, status) = match app.store.known(once).await? {
        Known::New => return Ok(None),
        Known::Answered { job, status } => (job, status),
        Known::Other => {
            return Err(Problem::new(
                Kind::IdempotencyKeyReused,
                "Another request was sent with this Idempotency-Key; repeat that one unchanged, or take a new key.",
            ));
        }
    };
    let job = app.store.find_job(id, &caller.viewer()).await?.ok_or_else(|| {
        let detail =
            format!("The request with this Idempotency-Key was about the job `{id}`, which is deleted.");
        Problem::new(Kind::JobNotFound, detail)
    })?;
    let status = StatusCode::from_u16(status).map_err(|_| Problem::internal())?;
    Ok(Some((job, status)))
}

/// The answer to a wish that was taken before under the same key: how the job stands now.
pub(super) async fn wish_replayed(
    app: &App,
    caller: &Caller,
    once: Option<&Once>,
) -> Result<Option<Response>, Problem> {
    let Some(once) = once else { return Ok(None) };
    let Some((job, status)) = answered(app, caller, once).await? else { return Ok(None) };
    super::answered(app, status, &job).await.map(mark).map(Some)
}

/// Says of an answer that it was given before.
pub(super) fn mark(mut answer: Response) -> Response {
    answer.headers_mut().insert(REPLAYED, HeaderValue::from_static("true"));
    answer
}
