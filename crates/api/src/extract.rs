//! How a request is read. Every way in which that can fail is a problem with a text for a person.

use axum::{
    extract::{FromRequestParts, Path},
    http::request::Parts,
};
use domain::{Cluster, JobId};

use crate::{
    layers,
    problem::{Kind, Problem},
    state::App,
};

mod accept;
mod body;
mod body_if_any;
mod idempotency_key;
mod query;
mod trace;

pub(crate) use accept::wants_stream;
pub(crate) use body::{Body, Sent};
pub(crate) use body_if_any::BodyIfAny;
pub(crate) use idempotency_key::IdempotencyKey;
pub(crate) use query::{FromQuery, NoParameters, Parameters, Query};
pub(crate) use trace::{Trace, trace_of};

/// The job in the path.
#[derive(Debug, Clone, Copy)]
pub(crate) struct JobInPath(pub(crate) JobId);

impl FromRequestParts<App> for JobInPath {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, app: &App) -> Result<Self, Problem> {
        let Path(text) = Path::<String>::from_request_parts(parts, app)
            .await
            .map_err(|_| Problem::new(Kind::BadRequest, "The path is not valid percent-encoded UTF-8."))?;
        // What is no UUID cannot name a job, so the answer is the one for any job that does not exist.
        let id = text.parse().map_err(|_| {
            let shown: String = text.chars().take(40).collect();
            Problem::new(Kind::JobNotFound, format!("`{shown}` is not a job id: a job id is a UUID."))
        })?;
        layers::name_job(id);
        Ok(Self(id))
    }
}

/// The configured cluster in the path.
#[derive(Debug, Clone)]
pub(crate) struct ClusterInPath(pub(crate) Cluster);

impl FromRequestParts<App> for ClusterInPath {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, app: &App) -> Result<Self, Problem> {
        let Path(text) = Path::<String>::from_request_parts(parts, app)
            .await
            .map_err(|_| Problem::new(Kind::BadRequest, "The path is not valid percent-encoded UTF-8."))?;
        let found = text.parse().ok().and_then(|name| app.cluster(&name).cloned());
        found.map(Self).ok_or_else(|| {
            let shown: String = text.chars().take(64).collect();
            let known: Vec<&str> = app.clusters.iter().map(|cluster| cluster.name.as_str()).collect();
            let detail =
                format!("No cluster `{shown}` is configured; the configured ones are: {}.", known.join(", "));
            Problem::new(Kind::ClusterNotFound, detail)
        })
    }
}

/// A job that does not exist for this caller.
pub(crate) fn no_such_job(id: JobId) -> Problem {
    Problem::new(Kind::JobNotFound, format!("There is no job `{id}`."))
}
