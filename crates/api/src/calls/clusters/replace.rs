//! `PUT /clusters/{name}`: new settings in the place of the old.

use axum::{extract::State, http::StatusCode, response::Response};
use domain::Violation;
use persistence::{ClusterChange, NewCluster};

use super::{changed, refused, settings::ClusterSettings};
use crate::{
    auth::Admin,
    http::extract::{Body, ClusterNameInPath, IfMatch, NoParameters, Query},
    problem::{Kind, Problem, problems},
    state::App,
    view::ClusterView,
};

problems!(
    Problems = SECURED,
    MalformedJson,
    BodyTooLarge,
    RequestTimeout,
    UnsupportedMediaType,
    InvalidHeader,
    InvalidRequest,
    TooDeep,
    ClusterNotFound,
    ClusterInFile,
    ClusterInUse,
    ClusterChanged,
    IfMatchRequired
);

/// Change a cluster
///
/// Replaces the settings of a cluster that is kept in the database; what is left out gets its default again. While jobs are
/// under way on it, its user, its base directory and at least one of its login hosts have to stay: they are how its jobs are
/// found. Everything else takes effect within seconds; jobs that were accepted keep what they were accepted with.
#[utoipa::path(
    put,
    path = "/clusters/{name}",
    tag = "clusters",
    operation_id = "replace_cluster",
    params(
        ("name" = String, Path, description = "The cluster's name."),
        ("If-Match" = String, Header, pattern = r#"^(?:\*|(?:W/)?"[0-9]{1,18}")$"#, example = "*", description = "The `ETag` of the cluster as you have seen it, so that nobody's change is \
            overwritten unseen; `*` for whatever it is.")
    ),
    request_body = ClusterSettings,
    security(("bearer" = ["admin"])),
    responses(
        (status = 200, description = "The cluster has the new settings.", body = ClusterView,
            headers(("ETag" = String, description = "The new revision of its settings."))),
        Problems
    )
)]
pub(crate) async fn replace_cluster(
    State(app): State<App>,
    Admin(caller): Admin,
    ClusterNameInPath(name): ClusterNameInPath,
    Query(NoParameters): Query<NoParameters>,
    IfMatch(meant): IfMatch,
    Body(sent): Body<ClusterSettings>,
) -> Result<Response, Problem> {
    let Some(meant) = meant else {
        let detail = "Send `If-Match` with the ETag that GET /clusters/{name} shows, or with `*`.";
        return Err(Problem::new(Kind::IfMatchRequired, detail));
    };
    super::not_in_file(&app, &name)?;
    super::is_object(&sent.document).map_err(Problem::fields)?;
    if sent.value.name.as_ref().is_some_and(|sent| *sent != name.as_str()) {
        let detail = "is not the name in the path, and a cluster's name never changes; leave it out";
        return Err(Problem::fields(vec![Violation::new("/name", "contradiction", detail)]));
    }
    let settings = sent.value.document();
    let checked = app.keeper.check(&name, &settings).map_err(Problem::fields)?;
    let new = NewCluster { name: &name, settings: &settings, identity: &checked.identity, by: &caller.owner };
    let revision = match app.store.replace_cluster(new, meant).await? {
        ClusterChange::Done { revision, .. } => revision,
        other => return Err(refused(&app, &name, &other)),
    };
    tracing::info!(owner = %caller.owner, cluster.name = %name, revision, "cluster changed by the API");
    changed(&app, StatusCode::OK, &checked.cluster, revision, &settings).await
}
