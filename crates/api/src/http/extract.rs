//! Extractors. Every failure is a problem with an explanation.

use axum::{
    extract::{FromRequestParts, Path},
    http::{header, request::Parts},
};
use domain::{Cluster, ClusterName, JobId};
use serde::de::DeserializeOwned;
use tracing::{Span, field};
use uuid::Uuid;

use crate::{
    auth::Caller,
    caches::known_clusters::UnusableCluster,
    problem::{Kind, Problem},
    state::App,
};

mod body;
mod idempotency_key;
mod if_match;
mod query;
mod trace;
mod wait;

pub(crate) use body::{Body, BodyIfAny, Sent};
pub(crate) use idempotency_key::IdempotencyKey;
pub(crate) use if_match::{IfMatch, etag, tagged};
pub(crate) use query::{FromQuery, LISTED, NoParameters, Parameters, Query, STREAMED};
pub(crate) use trace::{Trace, TraceHere, trace_of};
pub(crate) use wait::{Patience, requested_wait};

/// What most calls extract, in this order: the caller, the thing in the path, the query.
pub(crate) struct Call<P, Q = NoParameters, C = Caller>(
    pub(crate) App,
    pub(crate) C,
    pub(crate) P,
    pub(crate) Q,
);

impl<P, Q, C> FromRequestParts<App> for Call<P, Q, C>
where
    P: FromRequestParts<App, Rejection = Problem> + Send,
    Q: FromQuery,
    C: FromRequestParts<App, Rejection = Problem> + Send,
{
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, app: &App) -> Result<Self, Problem> {
        let caller = C::from_request_parts(parts, app).await?;
        let place = P::from_request_parts(parts, app).await?;
        let Query(query) = Query::from_request_parts(parts, app).await?;
        Ok(Self(app.clone(), caller, place, query))
    }
}

/// The path names no single thing.
pub(crate) struct NoPlace;

impl FromRequestParts<App> for NoPlace {
    type Rejection = Problem;

    async fn from_request_parts(_: &mut Parts, _: &App) -> Result<Self, Problem> {
        Ok(Self)
    }
}

/// Adds the job's id to the request's span, so that every later log line has it, also that of a database failure.
pub(crate) fn name_job(id: JobId) {
    Span::current().record("job.id", field::display(id));
}

pub(crate) async fn text_in_path<T: DeserializeOwned + Send>(
    parts: &mut Parts,
    app: &App,
) -> Result<T, Problem> {
    let text = Path::<T>::from_request_parts(parts, app).await;
    let wrong = |_| Problem::new(Kind::BadRequest, "The path is not valid percent-encoded UTF-8.");
    text.map(|Path(text)| text).map_err(wrong)
}

fn job_id(text: &str) -> Result<JobId, Problem> {
    // A text that is not a UUID gets the answer of a job that does not exist.
    let id = text.parse().map_err(|_| {
        let shown: String = text.chars().take(40).collect();
        Problem::new(Kind::JobNotFound, format!("`{shown}` is not a job id: job ids are UUIDs."))
    })?;
    name_job(id);
    Ok(id)
}

/// The job in the path.
#[derive(Debug, Clone, Copy)]
pub(crate) struct JobInPath(pub(crate) JobId);

impl FromRequestParts<App> for JobInPath {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, app: &App) -> Result<Self, Problem> {
        job_id(&text_in_path::<String>(parts, app).await?).map(Self)
    }
}

/// The job and its task in the path.
#[derive(Debug, Clone, Copy)]
pub(crate) struct TaskInPath(pub(crate) JobId, pub(crate) u32);

impl FromRequestParts<App> for TaskInPath {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, app: &App) -> Result<Self, Problem> {
        let (job, task) = text_in_path::<(String, String)>(parts, app).await?;
        let job = job_id(&job)?;
        let no_task = |_| {
            let shown: String = task.chars().take(40).collect();
            Problem::new(Kind::TaskNotFound, format!("`{shown}` is not the number of a task."))
        };
        Ok(Self(job, task.parse().map_err(no_task)?))
    }
}

/// The token's id in the path.
#[derive(Debug, Clone, Copy)]
pub(crate) struct TokenInPath(pub(crate) Uuid);

impl FromRequestParts<App> for TokenInPath {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, app: &App) -> Result<Self, Problem> {
        let text = text_in_path::<String>(parts, app).await?;
        let no_id = |_| Problem::new(Kind::NoSuchToken, "This is not a token's id: they are UUIDs.");
        text.parse().map(Self).map_err(no_id)
    }
}

/// The usable cluster in the path.
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

/// The cluster name in the path, whether the cluster exists or not.
#[derive(Debug, Clone)]
pub(crate) struct ClusterNameInPath(pub(crate) ClusterName);

impl FromRequestParts<App> for ClusterNameInPath {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, app: &App) -> Result<Self, Problem> {
        let text: String = text_in_path(parts, app).await?;
        // A text that cannot be a name gets the answer of a cluster that does not exist.
        text.parse().map(Self).map_err(|_| no_such_cluster(app, &text))
    }
}

pub(crate) fn no_such_cluster(app: &App, name: &str) -> Problem {
    let shown: String = name.chars().take(64).collect();
    let known = app.clusters.now();
    let known: Vec<&str> = known.all().iter().map(|cluster| cluster.name.as_str()).collect();
    let detail = format!("The cluster `{shown}` does not exist. Configured clusters: {}.", known.join(", "));
    Problem::new(Kind::ClusterNotFound, detail)
}

/// A stored cluster with invalid settings, with the `ETag` that a correction needs.
pub(crate) fn unusable_cluster(name: &ClusterName, unusable: &UnusableCluster) -> Problem {
    let detail = format!(
        "The cluster `{name}` cannot be used, because its stored settings are invalid ({}). Correct them with PUT /clusters/{name}.",
        unusable.reason()
    );
    Problem::new(Kind::ClusterUnusable, detail).with_text(header::ETAG, &etag(unusable.revision))
}

/// The job does not exist, or the caller may not see it.
pub(crate) fn no_such_job(id: JobId) -> Problem {
    Problem::new(Kind::JobNotFound, format!("The job `{id}` does not exist."))
}
