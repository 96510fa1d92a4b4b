//! `POST /clusters`: a cluster that is kept in the database.

use axum::{
    extract::State,
    http::{HeaderValue, StatusCode, header},
    response::Response,
};
use domain::{ClusterName, InvalidClusterName, Violation};
use persistence::{ClusterAdded, NewCluster};

use super::{changed, settings::ClusterSettings};
use crate::{
    auth::Admin,
    http::extract::{Body, NoParameters, Query, Sent},
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
    InvalidRequest,
    TooDeep,
    ClusterInFile,
    ClusterExists,
    TooManyClusters
);

/// Add a cluster
///
/// Keeps a cluster in the database, beside those of the configuration file; every process of the service takes it in within
/// seconds, without a restart. The key is named, not sent: it lies in the server's key directory. Nothing is tried on the
/// cluster; `POST /clusters/{name}/preflight` does that.
#[utoipa::path(
    post,
    path = "/clusters",
    tag = "clusters",
    operation_id = "create_cluster",
    request_body = ClusterSettings,
    security(("bearer" = ["admin"])),
    responses(
        (status = 201, description = "The cluster is kept.", body = ClusterView,
            headers(
                ("Location" = String, description = "Where to read the cluster."),
                ("ETag" = String, description = "The revision of its settings, for `If-Match`.")
            )),
        Problems
    )
)]
pub(crate) async fn create_cluster(
    State(app): State<App>,
    Admin(caller): Admin,
    Query(NoParameters): Query<NoParameters>,
    Body(sent): Body<ClusterSettings>,
) -> Result<Response, Problem> {
    let name = name(&sent).map_err(Problem::fields)?;
    super::not_in_file(&app, &name)?;
    let settings = sent.value.document();
    let checked = app.keeper.check(&name, &settings).map_err(Problem::fields)?;
    let new = NewCluster { name: &name, settings: &settings, identity: &checked.identity, by: &caller.owner };
    let revision = match app.store.add_cluster(new, app.limits.clusters).await? {
        ClusterAdded::Done { revision, .. } => revision,
        ClusterAdded::Exists => {
            let detail = format!("There is a cluster `{name}` already; PUT /clusters/{name} changes it.");
            return Err(Problem::new(Kind::ClusterExists, detail));
        }
        ClusterAdded::Full => {
            let most = app.limits.clusters;
            let detail =
                format!("At most {most} clusters are kept (`server.max_clusters`); delete one first.");
            return Err(Problem::new(Kind::TooManyClusters, detail));
        }
    };
    tracing::info!(owner = %caller.owner, cluster.name = %name, revision, "cluster added by the API");
    let mut answer = changed(&app, StatusCode::CREATED, &checked.cluster, revision, &settings).await?;
    if let Ok(location) = HeaderValue::from_str(&format!("/clusters/{name}")) {
        answer.headers_mut().insert(header::LOCATION, location);
    }
    Ok(answer)
}

fn name(sent: &Sent<ClusterSettings>) -> Result<ClusterName, Vec<Violation>> {
    super::is_object(&sent.document)?;
    let fault = |code, detail: String| vec![Violation::new("/name", code, detail)];
    let Some(name) = &sent.value.name else { return Err(fault("required", "is required".to_owned())) };
    name.parse().map_err(|error: InvalidClusterName| fault("invalid", error.to_string()))
}
