//! `POST /clusters/{name}/preflight`.

use axum::{Json, extract::State};
use domain::preflight::verdict;

use crate::{
    auth::Caller,
    http::extract::{ClusterInPath, NoParameters, Query},
    problem::{Problem, problems},
    state::App,
    view::PreflightView,
};

problems!(Problems = SECURED, ClusterNotFound, ClusterUnusable, ClusterBusy, ClusterUnavailable);

/// Try a cluster
///
/// Logs in to each login host anew and tries everything that jobs will need; each check says what was seen and how to
/// mend it. Takes seconds, up to half a minute for a cluster that does not answer. What fails is in the answer,
/// which is a 200 all the same.
#[utoipa::path(
    post,
    path = "/clusters/{name}/preflight",
    tag = "clusters",
    operation_id = "preflight_cluster",
    params(("name" = String, Path, description = "The cluster's name.")),
    security(("bearer" = ["write"])),
    responses((status = 200, description = "The checks.", body = PreflightView), Problems)
)]
pub(crate) async fn preflight_cluster(
    State(app): State<App>,
    _: Caller,
    ClusterInPath(cluster): ClusterInPath,
    Query(NoParameters): Query<NoParameters>,
) -> Result<Json<PreflightView>, Problem> {
    let checked_on = app.clock.now();
    let checks =
        app.ops.preflight(&cluster.name).await.map_err(|error| super::unavailable(&cluster, error))?;
    let took = (app.clock.now() - checked_on).num_milliseconds();
    let outcome = verdict(&checks);
    tracing::info!(cluster.name = %cluster.name, ?outcome, took_ms = took, "preflight");
    Ok(Json(PreflightView { cluster: cluster.name.to_string(), outcome, checked_on, checks }))
}
