//! The calls that change clusters in the database.

use axum::{
    Json,
    extract::State,
    http::{StatusCode, header},
    response::{IntoResponse, Response},
};
use domain::{Cluster, ClusterName, InvalidClusterName, Violation};
use persistence::{ClusterAdded, ClusterChange, ClusterWork, NewCluster, Revision};
use serde_json::Value;

use super::{is_object, read, settings::ClusterSettings};
use crate::{
    auth::Admin,
    caches::known_clusters::KeptFacts,
    http::extract::{
        Body, Call, ClusterNameInPath, IfMatch, NoParameters, Query, Sent, etag, no_such_cluster, tagged,
    },
    problem::{Kind, Problem, problems},
    state::App,
    view::ClusterView,
};

problems!(CreateProblems = SECURED | BODY, ClusterInFile, ClusterExists, TooManyClusters);

/// Add a cluster
///
/// Stores a cluster in the database, beside those of the configuration file. Every process of the service uses it within
/// seconds, without a restart. The request names an SSH key in the server's key directory; it never contains one. The
/// service does not contact the cluster: use `POST /clusters/{name}/preflight` to test it.
#[utoipa::path(
    post,
    path = "/clusters",
    request_body = ClusterSettings,
    security(("bearer" = ["admin"])),
    responses(
        (status = 201, description = "The cluster is stored.", body = ClusterView,
            headers(
                ("Location" = String, description = "The URL of the cluster."),
                ("ETag" = String, description = "The revision of the settings, for `If-Match`.")
            )),
        CreateProblems
    )
)]
pub(crate) async fn create_cluster(
    State(app): State<App>,
    Admin(caller): Admin,
    Query(NoParameters): Query<NoParameters>,
    Body(sent): Body<ClusterSettings>,
) -> Result<Response, Problem> {
    let name = name(&sent).map_err(Problem::fields)?;
    not_in_file(&app, &name)?;
    let settings = sent.value.document();
    let checked = app.keeper.check(&name, &settings).map_err(Problem::fields)?;
    let new = NewCluster { name: &name, settings: &settings, identity: &checked.identity, by: &caller.owner };
    let revision = match app.store.add_cluster(new, app.limits.clusters).await? {
        ClusterAdded::Done { revision, .. } => revision,
        ClusterAdded::Exists => {
            let detail =
                format!("The cluster `{name}` already exists. Use PUT /clusters/{name} to change it.");
            return Err(Problem::new(Kind::ClusterExists, detail));
        }
        ClusterAdded::Full => {
            let most = app.limits.clusters;
            let detail = format!(
                "The database already holds {most} clusters, the limit of `server.max_clusters`. Delete one first."
            );
            return Err(Problem::new(Kind::TooManyClusters, detail));
        }
    };
    tracing::info!(owner = %caller.owner, cluster.name = %name, revision, "cluster added by the API");
    let answer = changed(&app, StatusCode::CREATED, &checked.cluster, revision, &settings).await?;
    Ok(([(header::LOCATION, format!("/clusters/{name}"))], answer).into_response())
}

fn name(sent: &Sent<ClusterSettings>) -> Result<ClusterName, Vec<Violation>> {
    is_object(&sent.document)?;
    let fault = |code, detail: String| vec![Violation::new("/name", code, detail)];
    let Some(name) = &sent.value.name else { return Err(fault("required", "is required".to_owned())) };
    name.parse().map_err(|error: InvalidClusterName| fault("invalid", error.to_string()))
}

problems!(
    ReplaceProblems = SECURED | BODY,
    InvalidHeader,
    ClusterNotFound,
    ClusterInFile,
    ClusterInUse,
    ClusterChanged,
    IfMatchRequired
);

/// Change a cluster
///
/// Replaces the settings of a cluster in the database; an omitted key gets its default. While the cluster has active jobs,
/// its user, its base directory and at least one login host must stay the same. Other changes take effect within
/// seconds; accepted jobs keep their settings.
#[utoipa::path(
    put,
    path = "/clusters/{name}",
    params(
        ("name" = String, Path, description = "The cluster's name."),
        ("If-Match" = String, Header, pattern = r#"^(?:\*|(?:W/)?"[0-9]{1,18}")$"#, example = "*", description = "The `ETag` of the cluster as you \
            read it, so that no other change is overwritten. `*` matches any revision. A request without it gets a 428 (RFC 6585).")
    ),
    request_body = ClusterSettings,
    security(("bearer" = ["admin"])),
    responses(
        (status = 200, description = "The cluster has the new settings.", body = ClusterView,
            headers(("ETag" = String, description = "The new revision of the settings."))),
        ReplaceProblems
    )
)]
pub(crate) async fn replace_cluster(
    Call(app, Admin(caller), ClusterNameInPath(name), _): Call<ClusterNameInPath, NoParameters, Admin>,
    IfMatch(meant): IfMatch,
    Body(sent): Body<ClusterSettings>,
) -> Result<Response, Problem> {
    let Some(meant) = meant else {
        let detail =
            "`If-Match` is required. Send the `ETag` from `GET /clusters/{name}`, or `*` for any revision.";
        return Err(Problem::new(Kind::IfMatchRequired, detail));
    };
    not_in_file(&app, &name)?;
    is_object(&sent.document).map_err(Problem::fields)?;
    if sent.value.name.as_ref().is_some_and(|sent| *sent != name.as_str()) {
        let detail = "is not the name in the path, and a cluster's name cannot change; leave it out";
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

problems!(
    DeleteProblems = SECURED,
    InvalidHeader,
    ClusterNotFound,
    ClusterInFile,
    ClusterInUse,
    ClusterChanged
);

/// Delete a cluster
///
/// Deletes a cluster from the database. It must have no active jobs or removals. Finished jobs stay
/// readable; their logs and files are unavailable until a cluster of that name is added again.
#[utoipa::path(
    delete,
    path = "/clusters/{name}",
    params(
        ("name" = String, Path, description = "The cluster's name."),
        ("If-Match" = Option<String>, Header, pattern = r#"^(?:\*|(?:W/)?"[0-9]{1,18}")$"#, example = "*", description = "The `ETag` of the cluster \
            to delete. Default: `*`, any revision.")
    ),
    security(("bearer" = ["admin"])),
    responses((status = 204, description = "The cluster is deleted."), DeleteProblems)
)]
pub(crate) async fn delete_cluster(
    Call(app, Admin(caller), ClusterNameInPath(name), _): Call<ClusterNameInPath, NoParameters, Admin>,
    IfMatch(meant): IfMatch,
) -> Result<StatusCode, Problem> {
    not_in_file(&app, &name)?;
    match app.store.delete_cluster(&name, meant.unwrap_or(Revision::Any)).await? {
        ClusterChange::Done { revision, .. } => {
            tracing::info!(owner = %caller.owner, cluster.name = %name, revision, "cluster deleted by the API");
            app.keeper.refresh().await;
            Ok(StatusCode::NO_CONTENT)
        }
        other => Err(refused(&app, &name, &other)),
    }
}

/// A cluster of the configuration file is changed only there.
fn not_in_file(app: &App, name: &ClusterName) -> Result<(), Problem> {
    if !app.clusters.now().is_in_file(name) {
        return Ok(());
    }
    let detail = format!(
        "The cluster `{name}` is defined in the service's configuration file. Change it there and restart the service."
    );
    Err(Problem::new(Kind::ClusterInFile, detail))
}

/// The answer after a change: this process already uses it.
async fn changed(
    app: &App,
    status: StatusCode,
    cluster: &Cluster,
    revision: i64,
    settings: &Value,
) -> Result<Response, Problem> {
    app.keeper.refresh().await;
    let now = app.clusters.now();
    let made = KeptFacts { revision, incarnation: 0, settings: settings.clone(), unavailable: None };
    // The change that was stored, even if another caller has changed the cluster since.
    let facts = now.kept(&cluster.name).filter(|facts| facts.revision == revision).unwrap_or(&made);
    let view = read::view(app, cluster, Some(facts)).await?;
    Ok(tagged((status, Json(view)), revision))
}

/// Why the change was refused.
fn refused(app: &App, name: &ClusterName, why: &ClusterChange) -> Problem {
    match why {
        ClusterChange::Changed { revision } => {
            let detail = format!(
                "The cluster `{name}` now has the ETag {}. Read it again, and send the change with that ETag.",
                etag(*revision)
            );
            Problem::new(Kind::ClusterChanged, detail)
        }
        ClusterChange::InUse { work, differs_in } if differs_in.is_empty() => {
            let detail =
                format!("The cluster `{name}` still has {}. Delete it when they have finished.", say(*work));
            Problem::new(Kind::ClusterInUse, detail)
        }
        ClusterChange::InUse { work, differs_in } => {
            let detail = format!(
                "A change of {} makes this another cluster, but `{name}` still has {}. Wait until they have finished, or add \
     the other cluster under a new name.",
                differs_in.join(" and "),
                say(*work)
            );
            Problem::new(Kind::ClusterInUse, detail)
        }
        ClusterChange::NoCluster | ClusterChange::Done { .. } => no_such_cluster(app, name.as_str()),
    }
}

fn say(work: ClusterWork) -> String {
    let counts =
        [(work.jobs, "active jobs"), (work.removals, "deleted jobs whose files are still being removed")];
    let parts = counts.iter().filter(|(count, _)| *count > 0).map(|(count, what)| format!("{count} {what}"));
    parts.collect::<Vec<_>>().join(" and ")
}
