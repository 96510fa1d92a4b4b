//! `GET /clusters`.

use axum::{Json, extract::State};

use crate::{
    auth::Caller,
    extract::{NoParameters, Query},
    problem::{Problem, problems},
    state::App,
    view::ClusterList,
};

problems!(Problems = SECURED);

/// List the clusters
///
/// In the configured order; the first is the default. Answered without asking any of them.
#[utoipa::path(
    get,
    path = "/clusters",
    tag = "clusters",
    operation_id = "list_clusters",
    security(("bearer" = ["read"])),
    responses((status = 200, description = "The clusters.", body = ClusterList), Problems)
)]
pub(crate) async fn list_clusters(
    State(app): State<App>,
    _: Caller,
    Query(NoParameters): Query<NoParameters>,
) -> Result<Json<ClusterList>, Problem> {
    Ok(Json(ClusterList { clusters: super::views(&app, app.clusters.iter()).await? }))
}
