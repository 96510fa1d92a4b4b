//! `DELETE /jobs/{id}`: a job that has ended is forgotten, and what it left on the cluster removed when asked for.

use axum::{extract::State, http::StatusCode};
use domain::Phase;
use persistence::Requested;

use crate::{
    auth::Caller,
    calls::clusters::{gone, is_there},
    http::extract::{FromQuery, JobInPath, Parameters, Query, no_such_job},
    problem::{Kind, Problem, problems},
    state::App,
};

problems!(Problems = SECURED, JobNotFound, WrongState, ClusterGone, ClusterUnusable);

/// What else is to go.
#[derive(Debug)]
pub(crate) struct Extent {
    artifacts: bool,
}

impl FromQuery for Extent {
    const KNOWN: &'static [&'static str] = &["artifacts"];

    fn from_query(parameters: &Parameters) -> Result<Self, Problem> {
        Ok(Self { artifacts: parameters.parse("artifacts", "`true` or `false`")?.unwrap_or(false) })
    }
}

/// Delete a job
///
/// Only a job that has ended can be deleted: cancel it first. What it left on the cluster stays there unless
/// `artifacts=true`.
#[utoipa::path(
    delete,
    path = "/jobs/{id}",
    tag = "jobs",
    operation_id = "delete_job",
    params(
        ("id" = domain::JobId, Path, description = "The job's id."),
        ("artifacts" = Option<bool>, Query, description = "Also remove the job's results, logs, specification and \
            script from the cluster. That goes on after the answer, until the cluster has done it, for a day at most. A \
            results directory that was there before the job stays. Default false.")
    ),
    security(("bearer" = ["write"])),
    responses((status = 204, description = "It is gone."), Problems)
)]
pub(crate) async fn delete_job(
    State(app): State<App>,
    caller: Caller,
    JobInPath(id): JobInPath,
    Query(Extent { artifacts }): Query<Extent>,
) -> Result<StatusCode, Problem> {
    let incarnation = if artifacts {
        // They would wait for a cluster that nobody asks.
        is_there(&app, &*super::find(&app, &caller, id).await?)?
    } else {
        None
    };
    let (viewer, now) = (caller.viewer(), app.clock.now());
    match app.store.request_delete(id, &viewer, artifacts, incarnation, now).await? {
        Requested::Taken(_) => {
            tracing::info!(job.id = %id, artifacts, owner = %caller.owner, "job deleted");
            Ok(StatusCode::NO_CONTENT)
        }
        // Nothing but its cluster can have been in the way.
        Requested::Stays(job) if job.phase == Phase::Ended => Err(gone(&job.cluster)),
        Requested::Stays(job) => Err(Problem::new(
            Kind::WrongState,
            format!("The job is {}; cancel it, and delete it once it has ended.", job.status),
        )),
        Requested::NoJob => Err(no_such_job(id)),
    }
}
