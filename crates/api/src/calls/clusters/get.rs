//! `GET /clusters/{name}`.

use axum::{
    Json,
    extract::State,
    response::{IntoResponse, Response},
};

use super::tagged;
use crate::{
    auth::Caller,
    http::extract::{ClusterInPath, NoParameters, Query},
    problem::{Problem, problems},
    state::App,
    view::ClusterView,
};

problems!(Problems = SECURED, ClusterNotFound, ClusterUnusable);

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
    responses(
        (status = 200, description = "The cluster.", body = ClusterView,
            headers(("ETag" = String, description = "The revision of its settings, for `If-Match`; none for a cluster of the \
                configuration file."))),
        Problems
    )
)]
pub(crate) async fn get_cluster(
    State(app): State<App>,
    _: Caller,
    ClusterInPath(cluster): ClusterInPath,
    Query(NoParameters): Query<NoParameters>,
) -> Result<Response, Problem> {
    let known = app.clusters.now();
    let kept = known.kept(&cluster.name);
    let answer = Json(super::view(&app, &cluster, kept).await?).into_response();
    Ok(match kept {
        Some(facts) => tagged(answer, facts.revision),
        None => answer,
    })
}
