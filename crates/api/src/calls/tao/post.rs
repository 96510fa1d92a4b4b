//! `POST /api/v1/internal/container_job`: a job as TAO's services post it.

use axum::{Json, extract::State};
use domain::{ContainerJob, container_job_pointer};
use serde::Serialize;
use utoipa::ToSchema;
use uuid::Uuid;

use crate::{
    auth::Caller,
    calls::jobs,
    http::extract::{Body, NoParameters, Query, Sent, Trace},
    problem::{Problem, problems},
    state::App,
};

problems!(
    Problems = SECURED,
    MalformedJson,
    BodyTooLarge,
    RequestTimeout,
    UnsupportedMediaType,
    InvalidRequest,
    TooDeep,
    IdConflict,
    ClusterGone
);

/// The job that was posted.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct ContainerJobPostedView {
    /// The job's id, for every call about it.
    job_id: Uuid,
}

/// Send a job as TAO does
///
/// What TAO's services post to the microservice in a container, for the functions of the published client that do
/// so: the job is stored, durably, and a worker submits it. The configuration says which image each network runs in.
/// A `job_id` makes it safe to repeat. The token may also come as the password of HTTP Basic, and the body without a
/// `Content-Type`.
#[utoipa::path(
    post,
    path = "/api/v1/internal/container_job",
    tag = "tao",
    operation_id = "post_container_job",
    params(Trace),
    request_body = ContainerJob,
    security(("bearer" = ["write"]), ("basic" = ["write"])),
    responses(
        (status = 200, description = "The job is stored, now or by the same request before.",
            body = ContainerJobPostedView),
        Problems
    )
)]
pub(crate) async fn post_container_job(
    State(app): State<App>,
    caller: Caller,
    Query(NoParameters): Query<NoParameters>,
    Trace(trace): Trace,
    Body(Sent { document, value }): Body<ContainerJob>,
) -> Result<Json<ContainerJobPostedView>, Problem> {
    let request = value.into_request(&app.container_images).map_err(|fault| Problem::fields(vec![fault]))?;
    let sent = Sent { document, value: request };
    let stored = jobs::store(&app, &caller, sent, trace, None).await.map_err(in_their_words)?;
    let stored = stored.ok_or_else(Problem::internal)?;
    Ok(Json(ContainerJobPostedView { job_id: stored.job.id.get() }))
}

fn in_their_words(problem: Problem) -> Problem {
    problem.with_pointers(container_job_pointer)
}
