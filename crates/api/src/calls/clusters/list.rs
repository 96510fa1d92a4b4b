//! `GET /clusters`.

use axum::{Json, extract::State};

use crate::{
    auth::Caller,
    http::extract::{NoParameters, Query},
    problem::{Problem, problems},
    state::App,
    view::{ClusterList, UnusableClusterView},
};

problems!(Problems = SECURED);

/// List the clusters
///
/// Those of the configuration file in its order, then those that are kept in the database, the oldest first; the first of
/// all is the default. Answered without asking any of them.
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
    let known = app.clusters.now();
    let all = known.all().iter().map(|cluster| (cluster, known.kept(&cluster.name)));
    let unusable = known.unusable().iter().map(|(name, unusable)| UnusableClusterView::new(name, unusable));
    Ok(Json(ClusterList { clusters: super::views(&app, all).await?, unusable: unusable.collect() }))
}
