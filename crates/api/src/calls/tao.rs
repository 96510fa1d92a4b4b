//! TAO's container-job API: TAO's services post jobs to a microservice and poll their status. Here these calls
//! submit and read jobs of this service.

use axum::{
    Json,
    extract::{Request, State},
    http::{HeaderMap, HeaderName, HeaderValue, header},
    middleware::Next,
    response::Response,
};
use base64::{Engine, prelude::BASE64_STANDARD};
use domain::{ContainerJob, JobId, ResultsDir, Status, container_job_pointer};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;
use uuid::Uuid;

use crate::{
    calls::{
        health::{Health, LiveProblems, ReadyProblems, livez, readyz},
        jobs,
    },
    http::extract::{Body, Call, FromQuery, NoParameters, NoPlace, Parameters, Query, Sent, Trace, name_job},
    problem::{Kind, Problem, problems},
    state::App,
};

problems!(PostProblems = SECURED | BODY, IdConflict, ClusterGone);

/// The stored job.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct ContainerJobPostedView {
    /// The job's id, for all other calls.
    job_id: Uuid,
}

/// Submit a job in TAO's format
///
/// Accepts the request that the functions of TAO's published client post to the microservice in a container. The job is stored
/// durably and a worker submits it to Slurm. The service's configuration maps each network to an image. With a `job_id` the
/// request is safe to repeat. The token can also be the password of HTTP Basic, and the body can lack a `Content-Type`.
#[utoipa::path(
    post,
    path = "/api/v1/internal/container_job",
    params(Trace),
    request_body = ContainerJob,
    security(("bearer" = ["write"]), ("basic" = ["write"])),
    responses(
        (status = 200, description = "The job is stored, by this request or by an earlier identical one.",
            body = ContainerJobPostedView),
        PostProblems
    )
)]
pub(crate) async fn post_container_job(
    Call(app, caller, NoPlace, _): Call<NoPlace>,
    Trace { traceparent }: Trace,
    Body(Sent { document, value }): Body<ContainerJob>,
) -> Result<Json<ContainerJobPostedView>, Problem> {
    let request = value.into_request(&app.container_images).map_err(|fault| Problem::fields(vec![fault]))?;
    let sent = Sent { document, value: request };
    let stored = jobs::store(&app, &caller, sent, traceparent, None)
        .await
        .map_err(|problem| problem.with_pointers(container_job_pointer))?;
    let stored = stored.ok_or_else(Problem::internal)?;
    Ok(Json(ContainerJobPostedView { job_id: stored.job.id.get() }))
}

problems!(PauseProblems = SECURED | BODY, JobNotFound, WrongState);

/// The job to pause.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct ContainerJobPause {
    /// The job's id.
    job_id: Uuid,
}

/// A job that pauses or is paused.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct ContainerJobPausedView {
    /// What happens now.
    message: String,
}

/// Pause a job in TAO's format
///
/// The same as `POST /jobs/{id}/pause`.
#[utoipa::path(
    post,
    path = "/api/v1/internal/container_job:pause",
    operation_id = "pause_container_job",
    request_body = ContainerJobPause,
    security(("bearer" = ["write"]), ("basic" = ["write"])),
    responses(
        (status = 200, description = "The job will be paused, or is paused.", body = ContainerJobPausedView),
        PauseProblems
    )
)]
pub(crate) async fn pause_container_job(
    Call(app, caller, NoPlace, _): Call<NoPlace>,
    Body(Sent { value: ContainerJobPause { job_id }, .. }): Body<ContainerJobPause>,
) -> Result<Json<ContainerJobPausedView>, Problem> {
    let id = JobId::new(job_id);
    name_job(id);
    let (_, job) = jobs::control::pause(&app, &caller, id).await?;
    Ok(Json(ContainerJobPausedView { message: job.message }))
}

problems!(StatusProblems = SECURED, JobNotFound);

/// A job's status in TAO's format.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct ContainerJobStatusView {
    /// The same status as in `/jobs/{id}/status`.
    #[schema(value_type = String)]
    status: Status,
    /// The job's id.
    job_id: Uuid,
    /// What happens now, or how the job ended and why.
    message: String,
}

/// Selects a job.
#[derive(Debug)]
pub(crate) struct StatusQuery {
    results_dir: String,
}

impl FromQuery for StatusQuery {
    const KNOWN: &'static [&'static str] = &["results_dir"];

    fn from_query(parameters: &Parameters) -> Result<Self, Problem> {
        match parameters.one("results_dir")? {
            Some(text) if !text.is_empty() => Ok(Self { results_dir: text.to_owned() }),
            _ => Err(Problem::parameter(
                "results_dir",
                "required",
                "is required: the `results_dir` in the job's specification",
            )),
        }
    }
}

/// Read a job's status in TAO's format
///
/// Finds the newest job with this `results_dir` in its specification. If there is none, finds the job whose id is the last part
/// of the directory, as in `/results/<job id>`.
#[utoipa::path(
    get,
    path = "/api/v1/internal/container_job:status",
    params(("results_dir" = String, Query, min_length = 1, description = "The `results_dir` in the job's specification.")),
    security(("bearer" = ["read"]), ("basic" = ["read"])),
    responses((status = 200, description = "The status.", body = ContainerJobStatusView), StatusProblems)
)]
pub(crate) async fn get_container_job_status(
    Call(app, caller, NoPlace, StatusQuery { results_dir }): Call<NoPlace, StatusQuery>,
) -> Result<Json<ContainerJobStatusView>, Problem> {
    let dir = ResultsDir::new(&results_dir);
    let viewer = caller.viewer();
    let mut found = app.store.find_job_of_results_dir(&dir.as_stored, &viewer).await?;
    if let (None, Some(id)) = (&found, dir.id) {
        found = app.store.find_job(JobId::new(id), &viewer).await?;
    }
    let job = found.ok_or_else(|| {
        let shown: String = results_dir.chars().take(200).collect();
        Problem::new(Kind::JobNotFound, format!("No job has the results_dir `{shown}`."))
    })?;
    name_job(job.id);
    let message = job.explained_message(jobs::freshness(&app, &job).await?.has_nodes);
    Ok(Json(ContainerJobStatusView { status: job.status, job_id: job.id.get(), message }))
}

/// Check liveness for TAO
///
/// The same as `/livez`.
#[utoipa::path(
    get,
    path = "/api/v1/health/liveness",
    operation_id = "get_container_liveness",
    security(()),
    responses((status = 200, description = "The process is alive.", body = Health), LiveProblems)
)]
pub(crate) async fn liveness(query: Query<NoParameters>) -> Json<Health> {
    livez(query).await
}

/// Check readiness for TAO
///
/// The same as `/readyz`.
#[utoipa::path(
    get,
    path = "/api/v1/health/readiness",
    operation_id = "get_container_readiness",
    security(()),
    responses((status = 200, description = "The process is ready.", body = Health), ReadyProblems)
)]
pub(crate) async fn readiness(app: State<App>, query: Query<NoParameters>) -> Result<Json<Health>, Problem> {
    readyz(app, query).await
}

/// Only browsers send these.
const BROWSERS: [HeaderName; 2] = [header::ORIGIN, HeaderName::from_static("sec-fetch-site")];

/// TAO's client has no parameter for a token, but its HTTP library sends credentials of the base URL or a netrc file as HTTP
/// Basic; the password is the token. The client also sends JSON without a `Content-Type`.
pub(crate) async fn adapted(mut request: Request, next: Next) -> Response {
    let headers = request.headers_mut();
    if let Some(token) = password(headers) {
        headers.insert(header::AUTHORIZATION, token);
    }
    // A web page could make a browser send a body without a type, without a CORS preflight.
    let browser = BROWSERS.iter().any(|name| headers.contains_key(name));
    if !headers.contains_key(header::CONTENT_TYPE) && !browser {
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
    }
    next.run(request).await
}

/// The password of HTTP Basic (RFC 7617) as a bearer token.
fn password(headers: &HeaderMap) -> Option<HeaderValue> {
    let value = headers.get(header::AUTHORIZATION)?.as_bytes();
    let (scheme, rest) = value.split_at_checked(6)?;
    if !scheme.eq_ignore_ascii_case(b"basic ") {
        return None;
    }
    let pair = BASE64_STANDARD.decode(rest.trim_ascii()).ok()?;
    let colon = pair.iter().position(|byte| *byte == b':')?;
    let mut bearer = HeaderValue::from_bytes(&[b"Bearer ", &pair[colon + 1..]].concat()).ok()?;
    bearer.set_sensitive(true);
    Some(bearer)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(value: &str) -> Option<String> {
        let headers = HeaderMap::from_iter([(header::AUTHORIZATION, value.parse().unwrap())]);
        password(&headers).map(|value| value.to_str().unwrap().to_owned())
    }

    #[test]
    fn the_password_is_the_token_whoever_the_user_is() {
        // `tao:tsl_a:b`, `:tsl_a`
        assert_eq!(read("Basic dGFvOnRzbF9hOmI=").as_deref(), Some("Bearer tsl_a:b"));
        assert_eq!(read("basic  OnRzbF9h").as_deref(), Some("Bearer tsl_a"));
    }

    #[test]
    fn anything_else_stays_as_it_is() {
        // No colon; a line break in the password.
        for other in ["Bearer dGFvOnRzbF9h", "Basic", "Basic ", "Basic !", "Basic dGFv", "Basic YTpiCmM="] {
            assert_eq!(read(other), None, "{other}");
        }
    }
}
