//! What the partitions of a cluster are: asked now and then, remembered in the database, read by everybody else.

use std::{collections::HashMap, sync::Arc, time::Duration};

use domain::{Job, JobId};
use persistence::{StoreError, WorkStore};
use remote::Partitions;
use tokio_util::sync::CancellationToken;

use crate::{
    link::cluster_link::ClusterLink,
    worker::{MIN_NAP, OVERTAKEN, SWEEP, Site, Worker, database_failed, pause},
};

/// Longer than a question can take: whoever took the turn and died is made good for after it.
const PATIENCE: Duration = Duration::from_mins(2);
/// After a question that was not answered, unless the questions are closer together anyway.
const TRY_AGAIN: Duration = Duration::from_mins(1);
/// The longest sleep, so that the loop is seen to be alive.
const LONGEST_NAP: Duration = Duration::from_mins(1);

impl<L: ClusterLink, S: WorkStore> Worker<L, S> {
    /// Asks for the partitions of one cluster whenever it is time, one worker at a time.
    pub(crate) async fn learn(self: Arc<Self>, site: Arc<Site<L>>, stop: CancellationToken) {
        let name = partitions_name(&site);
        while !stop.is_cancelled() {
            self.beat(&site, &name);
            if let Err(error) = self.learn_if_due(&site).await {
                database_failed("asking for partitions", &error);
                pause(SWEEP, &stop).await;
                continue;
            }
            let due = self.store.next_partitions_in(&site.target.cluster.name).await.ok().flatten();
            pause(due.unwrap_or(SWEEP).clamp(MIN_NAP, LONGEST_NAP), &stop).await;
        }
    }

    /// Whether the cluster was asked.
    pub(crate) async fn learn_if_due(&self, site: &Site<L>) -> Result<bool, StoreError> {
        let cluster = &site.target.cluster.name;
        if !self.store.take_partitions_turn(cluster, PATIENCE).await? {
            return Ok(false);
        }
        if !self.is_still_meant(site).await? {
            self.store
                .record_partitions_unanswered(cluster, "not asked yet", OVERTAKEN, self.clock.now())
                .await?;
            return Ok(false);
        }
        let every = self.settings.partitions_every;
        let answer = site.target.link.call(&Partitions).await;
        let now = self.clock.now();
        match answer {
            Ok(answer) => {
                if answer.dropped > 0 {
                    tracing::warn!(cluster.name = %cluster, dropped = answer.dropped, "rows of sinfo could not be read");
                }
                self.store.record_partitions(cluster, &answer, every, now).await?;
            }
            Err(error) => {
                tracing::warn!(cluster.name = %cluster, %error, "the cluster did not say what its partitions are");
                let again_in = TRY_AGAIN.min(every);
                self.store.record_partitions_unanswered(cluster, &error.to_string(), again_in, now).await?;
            }
        }
        Ok(true)
    }

    /// How many nodes each of the jobs can do without, if the cluster has said so lately.
    pub(crate) async fn spare_nodes(&self, site: &Site<L>, jobs: &[&Job]) -> HashMap<JobId, usize> {
        if jobs.is_empty() {
            return HashMap::new();
        }
        let known = self.store.partitions().await.unwrap_or_else(|error| {
            database_failed("reading the partitions", &error);
            HashMap::new()
        });
        let said = known.get(&site.target.cluster.name).and_then(|known| known.limits(self.clock.now()));
        let spare = |job: &&Job| Some((job.id, said.as_ref()?.spare_nodes(&job.spec)?));
        jobs.iter().filter_map(spare).collect()
    }
}

pub(crate) fn partitions_name<L>(site: &Site<L>) -> String {
    format!("partitions of cluster {}", site.target.cluster.name)
}
