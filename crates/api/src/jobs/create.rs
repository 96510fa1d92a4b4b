//! `POST /jobs`: a request becomes a stored job.

use axum::{
    Json,
    extract::State,
    http::{HeaderValue, StatusCode, header},
    response::{IntoResponse, Response},
};
use domain::{JobId, JobRequest, Violation};
use persistence::{Inserted, NewJob};

use super::{
    accept::{Accepted, accept},
    request_hash,
};
use crate::{
    auth::Caller,
    extract::{Body, NoParameters, Query},
    problem::{Kind, Problem, problems},
    state::App,
    view::JobView,
};

problems!(
    Problems = SECURED,
    MalformedJson,
    BodyTooLarge,
    RequestTimeout,
    UnsupportedMediaType,
    InvalidRequest,
    TooDeep,
    IdConflict
);

/// Send a job
///
/// Stores a job; it is durable before the answer, and a worker submits it. Send an `id` of your own to be able to
/// repeat the request safely: the same id with the same body answers the job that is stored already.
#[utoipa::path(
    post,
    path = "/jobs",
    tag = "jobs",
    operation_id = "create_job",
    request_body = JobRequest,
    security(("bearer" = [])),
    responses(
        (status = 201, description = "The job is stored.", body = JobView,
            headers(("Location" = String, description = "Where to read the job."))),
        (status = 200, description = "The job was stored before, by the same request.", body = JobView,
            headers(("Location" = String, description = "Where to read the job."))),
        Problems
    )
)]
pub(crate) async fn create_job(
    State(app): State<App>,
    caller: Caller,
    Query(NoParameters): Query<NoParameters>,
    Body(sent): Body<JobRequest>,
) -> Result<Response, Problem> {
    let Accepted { job, secrets, document, .. } = accept(&app, caller, sent).await?;
    let id = job.id;
    let new = NewJob { job, secrets, request_hash: request_hash::of(&document) };
    let (status, job) = match app.store.insert_job(&new).await? {
        Inserted::Created(job) => (StatusCode::CREATED, job),
        Inserted::Same(job) => (StatusCode::OK, job),
        Inserted::Other => return Err(id_taken(id)),
    };
    // The first line of a job's trail; the worker's go on with the attempts from 1.
    tracing::info!(
        job.id = %job.id,
        attempt = 0,
        cluster.name = %job.cluster,
        new = status == StatusCode::CREATED,
        "job accepted"
    );
    let mut response = (status, Json(super::whole(&app, &job).await?)).into_response();
    if let Ok(location) = HeaderValue::from_str(&format!("/jobs/{}", job.id)) {
        response.headers_mut().insert(header::LOCATION, location);
    }
    Ok(response)
}

/// Whose request has the id is not said: it may be somebody else's.
fn id_taken(id: JobId) -> Problem {
    let detail =
        format!("another request has the id `{id}`; repeat that request unchanged, or take a new id");
    Problem::with_fields(Kind::IdConflict, vec![Violation::new("/id", "id_conflict", detail)])
}
