//! `/livez` and `/readyz`: whether the process lives, and whether it is of use.

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

/// How long the database may take before it counts as not ready. Probes give up after a few seconds themselves,
/// and an answer that names the part is worth more to them than silence.
const DATABASE_PATIENCE: Duration = Duration::from_secs(2);

/// What a healthy process says.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct Health {
    /// `ok`.
    status: &'static str,
}

const OK: Json<Health> = Json(Health { status: "ok" });

problems!(LiveProblems = ALWAYS);
problems!(ReadyProblems = ALWAYS, NotReady);

/// Is the process alive?
///
/// Answers as long as the process can answer at all.
#[utoipa::path(
    get,
    path = "/livez",
    tag = "service",
    operation_id = "livez",
    security(()),
    responses((status = 200, description = "It is.", body = Health), LiveProblems)
)]
pub(crate) async fn livez(Query(NoParameters): Query<NoParameters>) -> Json<Health> {
    OK
}

/// Is the process ready to work?
///
/// Ready means: the database is reachable, its migrations are current, and the loops that this process runs are
/// alive. A cluster that does not answer does not make the service unready: it can still take and show jobs.
#[utoipa::path(
    get,
    path = "/readyz",
    tag = "service",
    operation_id = "readyz",
    security(()),
    responses((status = 200, description = "It is.", body = Health), ReadyProblems)
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
                StoreError::Schema { .. } => "database (its migrations are not current)".to_owned(),
                error if error.is_unavailable() => "database (unreachable)".to_owned(),
                _ => "database (it has no tables of ours: run its migrations)".to_owned(),
            });
        }
        Err(_) => not_ready.push("database (no answer)".to_owned()),
    }
    if not_ready.is_empty() {
        return Ok(OK);
    }
    Err(Problem::unavailable(Kind::NotReady, format!("Not ready: {}.", not_ready.join(", "))))
}
