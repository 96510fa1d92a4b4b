//! What the changes of clusters have in common.

use axum::{
    Json,
    http::{HeaderValue, StatusCode, header},
    response::{IntoResponse, Response},
};
use domain::{Cluster, ClusterName, Violation};
use persistence::{ClusterChange, ClusterWork};
use serde_json::Value;

use crate::{
    caches::known_clusters::KeptFacts,
    http::extract::{etag, no_such_cluster},
    problem::{Kind, Problem},
    state::App,
};

/// What is in the configuration file is changed there, and nowhere else.
pub(super) fn not_in_file(app: &App, name: &ClusterName) -> Result<(), Problem> {
    if !app.clusters.now().is_in_file(name) {
        return Ok(());
    }
    let detail = format!(
        "The cluster `{name}` stands in the service's configuration file, and is changed only there."
    );
    Err(Problem::new(Kind::ClusterInFile, detail))
}

/// serde fills a struct from a list too, by position. Nobody means that.
pub(super) fn is_object(document: &Value) -> Result<(), Vec<Violation>> {
    if document.is_array() {
        return Err(vec![Violation::new("", "wrong_type", "must be an object, not an array")]);
    }
    Ok(())
}

/// The answer to a change that was made: this process has taken it in.
pub(super) async fn changed(
    app: &App,
    status: StatusCode,
    cluster: &Cluster,
    revision: i64,
    settings: &Value,
) -> Result<Response, Problem> {
    app.keeper.refresh().await;
    let now = app.clusters.now();
    let made = KeptFacts { revision, incarnation: 0, settings: settings.clone(), unavailable: None };
    // What was stored, though somebody else may have changed it since.
    let facts = now.kept(&cluster.name).filter(|facts| facts.revision == revision).unwrap_or(&made);
    let view = super::view(app, cluster, Some(facts)).await?;
    Ok(tagged((status, Json(view)).into_response(), revision))
}

/// The answer with the revision that it shows.
pub(super) fn tagged(mut answer: Response, revision: i64) -> Response {
    if let Ok(tag) = HeaderValue::from_str(&etag(revision)) {
        answer.headers_mut().insert(header::ETAG, tag);
    }
    answer
}

/// Why a change was not made.
pub(super) fn refused(app: &App, name: &ClusterName, why: &ClusterChange) -> Problem {
    match why {
        ClusterChange::Changed { revision } => {
            let detail = format!(
                "The cluster `{name}` has the ETag {} by now; look at it, and send the change for that one.",
                etag(*revision)
            );
            Problem::new(Kind::ClusterChanged, detail)
        }
        ClusterChange::InUse { work, differs_in } if differs_in.is_empty() => {
            let detail = format!(
                "On the cluster `{name}` there are {}; it can be deleted once there are none.",
                say(*work)
            );
            Problem::new(Kind::ClusterInUse, detail)
        }
        ClusterChange::InUse { work, differs_in } => {
            let detail = format!(
                "With another {} it is another cluster, and on `{name}` there are {}. Change that once there are none, or add \
                 the other cluster under a name of its own.",
                differs_in.join(" and "),
                say(*work)
            );
            Problem::new(Kind::ClusterInUse, detail)
        }
        ClusterChange::NoCluster | ClusterChange::Done { .. } => no_such_cluster(app, name.as_str()),
    }
}

fn say(work: ClusterWork) -> String {
    let counts = [
        (work.jobs, "live jobs"),
        (work.removals, "deleted jobs whose files are still being removed"),
        (work.conversions, "conversions of images under way"),
    ];
    let said = counts.iter().filter(|(count, _)| *count > 0).map(|(count, what)| format!("{count} {what}"));
    said.collect::<Vec<_>>().join(" and ")
}
