//! The clusters: one endpoint a file. What only looks answers from memory and the database, never from a cluster.

use std::collections::HashMap;

use domain::{Cluster, ClusterName, Job};
use persistence::PollState;

use crate::{
    caches::known_clusters::KeptFacts,
    http::extract::unusable_cluster,
    ports::cluster_ops::ClusterUnavailable,
    problem::{Kind, Problem},
    state::App,
    view::{ClusterFacts, ClusterView},
};

mod change;
pub(crate) mod create;
pub(crate) mod credentials;
pub(crate) mod delete;
pub(crate) mod get;
pub(crate) mod list;
pub(crate) mod partitions;
pub(crate) mod preflight;
pub(crate) mod replace;
pub(crate) mod settings;

use change::{changed, is_object, not_in_file, refused, tagged};

type Shown<'a> = (&'a Cluster, Option<&'a KeptFacts>);

async fn views<'a>(
    app: &App,
    clusters: impl Iterator<Item = Shown<'a>>,
) -> Result<Vec<ClusterView>, Problem> {
    let polls: HashMap<ClusterName, PollState> = app.store.poll_states().await?;
    let partitions = app.partitions().get(&app.store).await?;
    let (now, known) = (app.clock.now(), app.clusters.now());
    let view = |(cluster, kept): Shown<'_>| {
        let facts = ClusterFacts {
            is_default: known.all().first().is_some_and(|first| first.name == cluster.name),
            kept,
            links: app.links.links(&cluster.name),
            poll: polls.get(&cluster.name),
            partitions_fetched_on: partitions.get(&cluster.name).and_then(|known| known.fetched_at),
        };
        ClusterView::new(cluster, facts, now)
    };
    Ok(clusters.map(view).collect())
}

async fn view(app: &App, cluster: &Cluster, kept: Option<&KeptFacts>) -> Result<ClusterView, Problem> {
    let view = views(app, std::iter::once((cluster, kept))).await?.pop();
    view.ok_or_else(Problem::internal)
}

pub(crate) fn unavailable(cluster: &Cluster, error: ClusterUnavailable) -> Problem {
    match error {
        ClusterUnavailable::Busy => {
            let detail = format!("The cluster `{}` is being asked this already. Ask again.", cluster.name);
            Problem::unavailable(Kind::ClusterBusy, detail)
        }
        ClusterUnavailable::Unanswered { detail } => {
            let detail = format!("The cluster `{}` did not do it: {detail}", cluster.name);
            Problem::unavailable(Kind::ClusterUnavailable, detail)
        }
    }
}

/// Whether the job's cluster can be asked anything: it may have been taken away since the job ended. Which one it is, for
/// what has to be stored only while it is that one; none for one of the configuration file.
pub(crate) fn is_there(app: &App, job: &Job) -> Result<Option<i64>, Problem> {
    let (known, name) = (app.clusters.now(), &job.cluster);
    if known.get(name).is_some() {
        return Ok(known.incarnation(name));
    }
    Err(known.unusable().get(name).map_or_else(|| gone(name), |unusable| unusable_cluster(name, unusable)))
}

/// The job's cluster was taken away, or is another one by now.
pub(crate) fn gone(name: &ClusterName) -> Problem {
    let detail = format!(
        "The job's cluster `{name}` was removed from the service or replaced by another; what needs the cluster can be done \
         only while it is there."
    );
    Problem::new(Kind::ClusterGone, detail)
}
