//! `GET /clusters/{name}`.

use axum::{Json, extract::State};

use crate::{
    auth::Caller,
    extract::{ClusterInPath, NoParameters, Query},
    problem::{Problem, problems},
    state::App,
    view::ClusterView,
};

problems!(Problems = SECURED, ClusterNotFound);

/// Look at a cluster
///
/// Its configuration without secrets, how its login hosts and polls fare, and what the connections of the answering
/// process have cost. Answered without asking the cluster.
#[utoipa::path(
    get,
    path = "/clusters/{name}",
    tag = "clusters",
    operation_id = "get_cluster",
    params(("name" = String, Path, description = "The cluster's name.")),
    security(("bearer" = ["read"])),
    responses((status = 200, description = "The cluster.", body = ClusterView), Problems)
)]
pub(crate) async fn get_cluster(
    State(app): State<App>,
    _: Caller,
    ClusterInPath(cluster): ClusterInPath,
    Query(NoParameters): Query<NoParameters>,
) -> Result<Json<ClusterView>, Problem> {
    let view = super::views(&app, std::iter::once(&cluster)).await?.pop();
    view.map(Json).ok_or_else(Problem::internal)
}
