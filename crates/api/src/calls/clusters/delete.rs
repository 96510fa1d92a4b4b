//! `DELETE /clusters/{name}`.

use axum::{extract::State, http::StatusCode};
use persistence::{ClusterChange, Revision};

use super::refused;
use crate::{
    auth::Admin,
    http::extract::{ClusterNameInPath, IfMatch, NoParameters, Query},
    problem::{Problem, problems},
    state::App,
};

problems!(Problems = SECURED, InvalidHeader, ClusterNotFound, ClusterInFile, ClusterInUse, ClusterChanged);

/// Remove a cluster
///
/// Forgets a cluster that is kept in the database, once nothing is under way on it. Jobs that have ended on it stay and can be
/// read; their logs and files cannot, until there is a cluster of that name again.
#[utoipa::path(
    delete,
    path = "/clusters/{name}",
    tag = "clusters",
    operation_id = "delete_cluster",
    params(
        ("name" = String, Path, description = "The cluster's name."),
        ("If-Match" = Option<String>, Header, pattern = r#"^(?:\*|(?:W/)?"[0-9]{1,18}")$"#, example = "*", description = "The `ETag` of the cluster as you have seen it; without it, whatever \
            it is.")
    ),
    security(("bearer" = ["admin"])),
    responses((status = 204, description = "It is forgotten."), Problems)
)]
pub(crate) async fn delete_cluster(
    State(app): State<App>,
    Admin(caller): Admin,
    ClusterNameInPath(name): ClusterNameInPath,
    Query(NoParameters): Query<NoParameters>,
    IfMatch(meant): IfMatch,
) -> Result<StatusCode, Problem> {
    super::not_in_file(&app, &name)?;
    match app.store.delete_cluster(&name, meant.unwrap_or(Revision::Any)).await? {
        ClusterChange::Done { revision, .. } => {
            tracing::info!(owner = %caller.owner, cluster.name = %name, revision, "cluster removed by the API");
            app.keeper.refresh().await;
            Ok(StatusCode::NO_CONTENT)
        }
        other => Err(refused(&app, &name, &other)),
    }
}
