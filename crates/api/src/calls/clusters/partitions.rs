//! `GET /clusters/{name}/partitions`.

use axum::{Json, extract::State};

use crate::{
    auth::Caller,
    http::extract::{ClusterInPath, NoParameters, Query},
    problem::{Problem, problems},
    state::App,
    view::PartitionList,
};

problems!(Problems = SECURED, ClusterNotFound, ClusterUnusable);

/// List a cluster's partitions
///
/// Their limits, nodes and GPUs, as the cluster last said them at `fetched_on`: it is asked every few minutes, not by
/// this call.
#[utoipa::path(
    get,
    path = "/clusters/{name}/partitions",
    tag = "clusters",
    operation_id = "list_partitions",
    params(("name" = String, Path, description = "The cluster's name.")),
    security(("bearer" = ["read"])),
    responses((status = 200, description = "The partitions.", body = PartitionList), Problems)
)]
pub(crate) async fn list_partitions(
    State(app): State<App>,
    _: Caller,
    ClusterInPath(cluster): ClusterInPath,
    Query(NoParameters): Query<NoParameters>,
) -> Result<Json<PartitionList>, Problem> {
    let known = app.partitions().get(&app.store).await?;
    Ok(Json(PartitionList::new(known.get(&cluster.name), app.clock.now())))
}
