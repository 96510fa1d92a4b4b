//! `/livez` and `/readyz`: liveness and readiness.

use std::time::Duration;

use axum::{Json, extract::State};
use persistence::StoreError;
use serde::Serialize;
use utoipa::ToSchema;

use crate::{
    http::extract::{NoParameters, Query},
    problem::{Kind, Problem, problems},
    state::App,
};

/// How long the database may take to answer. Probes time out after a few seconds; an answer that names the failed part helps
/// more than none.
const DATABASE_PATIENCE: Duration = Duration::from_secs(2);

/// The answer of a healthy process.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct Health {
    /// Always `ok`.
    status: &'static str,
}

const OK: Json<Health> = Json(Health { status: "ok" });

problems!(LiveProblems = PUBLIC);
problems!(ReadyProblems = PUBLIC, NotReady);

/// Check liveness
///
/// Succeeds as long as the process can answer requests.
#[utoipa::path(
    get,
    path = "/livez",
    security(()),
    responses((status = 200, description = "The process is alive.", body = Health), LiveProblems)
)]
pub(crate) async fn livez(Query(NoParameters): Query<NoParameters>) -> Json<Health> {
    OK
}

/// Check readiness
///
/// Ready means that the database is reachable, this program runs on its schema, and the loops of this process are alive. A
/// cluster that does not answer does not affect readiness: the service still accepts and shows jobs.
#[utoipa::path(
    get,
    path = "/readyz",
    security(()),
    responses((status = 200, description = "The process is ready.", body = Health), ReadyProblems)
)]
pub(crate) async fn readyz(
    State(app): State<App>,
    Query(NoParameters): Query<NoParameters>,
) -> Result<Json<Health>, Problem> {
    let mut not_ready = app.readiness.not_ready();
    match tokio::time::timeout(DATABASE_PATIENCE, app.store.ready()).await {
        Ok(Ok(())) => {}
        Ok(Err(error)) => {
            tracing::warn!(%error, "the database is not ready");
            not_ready.push(match error {
                StoreError::Schema(error) => error.to_string(),
                error if error.is_unavailable() => "database (unreachable)".to_owned(),
                _ => "database (tables are missing: run `tao-slurm migrate`)".to_owned(),
            });
        }
        Err(_) => not_ready.push("database (no answer)".to_owned()),
    }
    if not_ready.is_empty() {
        return Ok(OK);
    }
    Err(Problem::unavailable(Kind::NotReady, format!("Not ready: {}.", not_ready.join(", "))))
}
