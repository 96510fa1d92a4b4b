//! The clusters: one endpoint a file. What only looks answers from memory and the database, never from a cluster.

use std::collections::HashMap;

use domain::{Cluster, ClusterName};
use persistence::PollState;

use crate::{
    cluster_ops::ClusterUnavailable,
    problem::{Kind, Problem},
    state::App,
    view::{ClusterFacts, ClusterView},
};

pub(crate) mod credentials;
pub(crate) mod get;
pub(crate) mod list;
pub(crate) mod partitions;
pub(crate) mod preflight;

async fn views<'a>(
    app: &App,
    clusters: impl Iterator<Item = &'a Cluster>,
) -> Result<Vec<ClusterView>, Problem> {
    let polls: HashMap<ClusterName, PollState> = app.store.poll_states().await?;
    let partitions = app.partitions().get(&app.store).await?;
    let now = app.clock.now();
    let view = |cluster: &Cluster| {
        let facts = ClusterFacts {
            is_default: app.clusters.first().is_some_and(|first| first.name == cluster.name),
            links: app.links.links(&cluster.name),
            poll: polls.get(&cluster.name),
            partitions_fetched_on: partitions.get(&cluster.name).and_then(|known| known.fetched_at),
        };
        ClusterView::new(cluster, facts, now)
    };
    Ok(clusters.map(view).collect())
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
