//! The calls that read clusters, and the preflight.

use axum::{
    Json,
    response::{IntoResponse, Response},
};
use domain::{Cluster, preflight::verdict};

use super::unavailable;
use crate::{
    caches::known_clusters::KeptFacts,
    http::extract::{Call, ClusterInPath, NoPlace, tagged},
    problem::{Problem, problems},
    state::App,
    view::{ClusterFacts, ClusterList, ClusterView, PartitionList, PreflightView, UnusableClusterView},
};

problems!(ListProblems = SECURED);

/// List the clusters
///
/// Returns the clusters of the configuration file in its order, then the stored ones, oldest first. The first one is the
/// default. No cluster is contacted.
#[utoipa::path(
    get,
    path = "/clusters",
    security(("bearer" = ["read"])),
    responses((status = 200, description = "The clusters.", body = ClusterList), ListProblems)
)]
pub(crate) async fn list_clusters(
    Call(app, _, NoPlace, _): Call<NoPlace>,
) -> Result<Json<ClusterList>, Problem> {
    let known = app.clusters.now();
    let all = known.all().iter().map(|cluster| (cluster, known.kept(&cluster.name)));
    let unusable = known.unusable().iter().map(|(name, unusable)| UnusableClusterView::new(name, unusable));
    Ok(Json(ClusterList { clusters: views(&app, all).await?, unusable: unusable.collect() }))
}

problems!(ReadProblems = SECURED, ClusterNotFound, ClusterUnusable);

/// Read a cluster
///
/// Returns the configuration without secrets, the health of the login hosts, the polls, and the SSH use of the answering
/// process. The cluster is not contacted.
#[utoipa::path(
    get,
    path = "/clusters/{name}",
    params(("name" = String, Path, description = "The cluster's name.")),
    security(("bearer" = ["read"])),
    responses(
        (status = 200, description = "The cluster.", body = ClusterView,
            headers(("ETag" = String, description = "The revision of the settings, for `If-Match`. Absent for a cluster of the \
                configuration file."))),
        ReadProblems
    )
)]
pub(crate) async fn get_cluster(
    Call(app, _, ClusterInPath(cluster), _): Call<ClusterInPath>,
) -> Result<Response, Problem> {
    let known = app.clusters.now();
    let kept = known.kept(&cluster.name);
    let answer = Json(view(&app, &cluster, kept).await?).into_response();
    Ok(match kept {
        Some(facts) => tagged(answer, facts.revision),
        None => answer,
    })
}

type Shown<'a> = (&'a Cluster, Option<&'a KeptFacts>);

async fn views<'a>(
    app: &App,
    clusters: impl Iterator<Item = Shown<'a>>,
) -> Result<Vec<ClusterView>, Problem> {
    let polls = app.store.poll_states().await?;
    let partitions = app.partitions().await?;
    let rpcs = app.store.rpcs_spent().await?;
    let (now, known) = (app.clock.now(), app.clusters.now());
    let view = |(cluster, kept): Shown<'_>| {
        let facts = ClusterFacts {
            is_default: known.all().first().is_some_and(|first| first.name == cluster.name),
            kept,
            links: app.links.links(&cluster.name),
            poll: polls.get(&cluster.name),
            partitions_fetched_on: partitions.get(&cluster.name).and_then(|known| known.fetched_at),
            rpcs: rpcs.get(&cluster.name).copied(),
        };
        ClusterView::new(cluster, facts, now)
    };
    Ok(clusters.map(view).collect())
}

pub(super) async fn view(
    app: &App,
    cluster: &Cluster,
    kept: Option<&KeptFacts>,
) -> Result<ClusterView, Problem> {
    let view = views(app, std::iter::once((cluster, kept))).await?.pop();
    view.ok_or_else(Problem::internal)
}

/// List a cluster's partitions
///
/// Returns limits, nodes and GPUs as the cluster last reported them at `fetched_on`. The service asks the cluster every few
/// minutes, not in this call.
#[utoipa::path(
    get,
    path = "/clusters/{name}/partitions",
    params(("name" = String, Path, description = "The cluster's name.")),
    security(("bearer" = ["read"])),
    responses((status = 200, description = "The partitions.", body = PartitionList), ReadProblems)
)]
pub(crate) async fn list_partitions(
    Call(app, _, ClusterInPath(cluster), _): Call<ClusterInPath>,
) -> Result<Json<PartitionList>, Problem> {
    let known = app.partitions().await?;
    Ok(Json(PartitionList::new(known.get(&cluster.name), app.clock.now())))
}

problems!(PreflightProblems = SECURED, ClusterNotFound, ClusterUnusable, ClusterBusy, ClusterUnavailable);

/// Test a cluster
///
/// Logs in to each login host and tests everything that jobs need. Each check reports what was observed and how to fix it.
/// The call takes seconds, and up to half a minute if the cluster does not answer. Failed checks are part of the 200
/// answer.
#[utoipa::path(
    post,
    path = "/clusters/{name}/preflight",
    params(("name" = String, Path, description = "The cluster's name.")),
    security(("bearer" = ["write"])),
    responses((status = 200, description = "The checks.", body = PreflightView), PreflightProblems)
)]
pub(crate) async fn preflight_cluster(
    Call(app, _, ClusterInPath(cluster), _): Call<ClusterInPath>,
) -> Result<Json<PreflightView>, Problem> {
    let checked_on = app.clock.now();
    let checks = app.ops.preflight(&cluster.name).await.map_err(|error| unavailable(&cluster, error))?;
    let took = (app.clock.now() - checked_on).num_milliseconds();
    let outcome = verdict(&checks);
    tracing::info!(cluster.name = %cluster.name, ?outcome, took_ms = took, "preflight");
    Ok(Json(PreflightView { cluster: cluster.name.to_string(), outcome, checked_on, checks }))
}
