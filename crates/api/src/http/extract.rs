//! How a request is read. Every way in which that can fail is a problem with a text for a person.

use axum::{
    extract::{FromRequestParts, Path},
    http::{HeaderValue, header, request::Parts},
};
use domain::{Cluster, ClusterName, JobId};

use crate::{
    caches::known_clusters::UnusableCluster,
    http::layers,
    problem::{Kind, Problem},
    state::App,
};

mod accept;
mod body;
mod body_if_any;
mod idempotency_key;
mod if_match;
mod query;
mod trace;

pub(crate) use accept::wants_stream;
pub(crate) use body::{Body, Sent};
pub(crate) use body_if_any::BodyIfAny;
pub(crate) use idempotency_key::IdempotencyKey;
pub(crate) use if_match::{IfMatch, etag};
pub(crate) use query::{FromQuery, NoParameters, Parameters, Query};
pub(crate) use trace::{Trace, TraceHere, trace_of};

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

/// The cluster in the path, which can be worked with.
#[derive(Debug, Clone)]
pub(crate) struct ClusterInPath(pub(crate) Cluster);

impl FromRequestParts<App> for ClusterInPath {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, app: &App) -> Result<Self, Problem> {
        let ClusterNameInPath(name) = ClusterNameInPath::from_request_parts(parts, app).await?;
        let known = app.clusters.now();
        match (known.get(&name), known.unusable().get(&name)) {
            (Some(cluster), _) => Ok(Self(cluster.clone())),
            (None, Some(unusable)) => Err(unusable_cluster(&name, unusable)),
            (None, None) => Err(no_such_cluster(app, name.as_str())),
        }
    }
}

/// The name in the path, whether there is such a cluster or not.
#[derive(Debug, Clone)]
pub(crate) struct ClusterNameInPath(pub(crate) ClusterName);

impl FromRequestParts<App> for ClusterNameInPath {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, app: &App) -> Result<Self, Problem> {
        let Path(text) = Path::<String>::from_request_parts(parts, app)
            .await
            .map_err(|_| Problem::new(Kind::BadRequest, "The path is not valid percent-encoded UTF-8."))?;
        // What cannot name a cluster names none.
        text.parse().map(Self).map_err(|_| no_such_cluster(app, &text))
    }
}

pub(crate) fn no_such_cluster(app: &App, name: &str) -> Problem {
    let shown: String = name.chars().take(64).collect();
    let known = app.clusters.now();
    let known: Vec<&str> = known.all().iter().map(|cluster| cluster.name.as_str()).collect();
    let detail =
        format!("No cluster `{shown}` is configured; the configured ones are: {}.", known.join(", "));
    Problem::new(Kind::ClusterNotFound, detail)
}

/// A cluster whose settings in the database are no good, with the tag that a change of them needs.
pub(crate) fn unusable_cluster(name: &ClusterName, unusable: &UnusableCluster) -> Problem {
    let detail = format!(
        "The cluster `{name}` cannot be used, because its settings in the database are no good ({}); PUT /clusters/{name} mends \
         them.",
        unusable.reason()
    );
    let problem = Problem::new(Kind::ClusterUnusable, detail);
    match HeaderValue::from_str(&etag(unusable.revision)) {
        Ok(tag) => problem.with_header(header::ETAG, tag),
        Err(_) => problem,
    }
}

/// A job that does not exist for this caller.
pub(crate) fn no_such_job(id: JobId) -> Problem {
    Problem::new(Kind::JobNotFound, format!("There is no job `{id}`."))
}
