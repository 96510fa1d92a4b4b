//! `/api/v1/health/…`: what TAO's services ask a microservice before they post to it.

use axum::{Json, extract::State};

use crate::{
    calls::health::{Health, LiveProblems, ReadyProblems, livez, readyz},
    http::extract::{NoParameters, Query},
    problem::Problem,
    state::App,
};

/// Is the process alive, as TAO asks it?
///
/// The same as `/livez`.
#[utoipa::path(
    get,
    path = "/api/v1/health/liveness",
    tag = "tao",
    operation_id = "get_container_liveness",
    security(()),
    responses((status = 200, description = "It is.", body = Health), LiveProblems)
)]
pub(crate) async fn liveness(query: Query<NoParameters>) -> Json<Health> {
    livez(query).await
}

/// Is the process ready to work, as TAO asks it?
///
/// The same as `/readyz`.
#[utoipa::path(
    get,
    path = "/api/v1/health/readiness",
    tag = "tao",
    operation_id = "get_container_readiness",
    security(()),
    responses((status = 200, description = "It is.", body = Health), ReadyProblems)
)]
pub(crate) async fn readiness(app: State<App>, query: Query<NoParameters>) -> Result<Json<Health>, Problem> {
    readyz(app, query).await
}
