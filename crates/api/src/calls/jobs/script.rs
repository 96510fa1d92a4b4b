//! `GET /jobs/{id}/script`: the batch script as it was submitted. It holds no secret.

use axum::{
    extract::State,
    http::{HeaderValue, header},
    response::{IntoResponse, Response},
};
use utoipa::IntoParams;

use crate::{
    auth::Caller,
    http::extract::{FromQuery, JobInPath, Parameters, Query},
    problem::{Kind, Problem, problems},
    state::App,
};

problems!(Problems = SECURED, JobNotFound, AttemptNotFound, NoScriptYet);

/// Which script.
#[derive(Debug, IntoParams)]
#[into_params(parameter_in = Query)]
pub(crate) struct Which {
    /// Of this attempt; by default of the newest that was sent.
    #[param(value_type = Option<u32>, minimum = 1)]
    attempt: Option<u32>,
}

impl FromQuery for Which {
    const KNOWN: &'static [&'static str] = &["attempt"];

    fn from_query(parameters: &Parameters) -> Result<Self, Problem> {
        let attempt = parameters.number("attempt", 1, u64::from(u32::MAX))?;
        Ok(Self { attempt: attempt.and_then(|number| u32::try_from(number).ok()) })
    }
}

/// Read a job's batch script
///
/// The script as Slurm got it, byte for byte.
#[utoipa::path(
    get,
    path = "/jobs/{id}/script",
    tag = "jobs",
    operation_id = "get_job_script",
    params(("id" = domain::JobId, Path, description = "The job's id."), Which),
    security(("bearer" = ["read"])),
    responses(
        (status = 200, description = "The script.", content_type = "text/plain", body = String,
            headers(
                ("X-Content-Type-Options" = String, description = "`nosniff`: it is no page, whatever it looks like."),
                ("Cache-Control" = String, description = "`private, no-cache`.")
            )),
        Problems
    )
)]
pub(crate) async fn get_job_script(
    State(app): State<App>,
    caller: Caller,
    JobInPath(id): JobInPath,
    Query(which): Query<Which>,
) -> Result<Response, Problem> {
    let job = super::find(&app, &caller, id).await?;
    let newest = job.attempt.as_ref().map_or(0, |attempt| attempt.no.get());
    if let Some(number) = which.attempt.filter(|number| *number > newest) {
        return Err(Problem::new(
            Kind::AttemptNotFound,
            format!("The job has no attempt {number}; it has had {newest}."),
        ));
    }
    let Some(script) = app.store.script(job.id, which.attempt).await? else {
        let detail = "The job has not been sent to Slurm yet, so there is no script.";
        return Err(Problem::new(Kind::NoScriptYet, detail));
    };
    let mut response = script.into_response();
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("text/plain; charset=utf-8"));
    // A script is anybody's text: no browser may take it for a page.
    headers.insert(header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("private, no-cache"));
    Ok(response)
}
