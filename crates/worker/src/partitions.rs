//! The partitions of a cluster: read now and then, and kept in the database.

use std::{collections::HashMap, sync::Arc, time::Duration};

use domain::{Job, JobId};
use persistence::WorkStore;
use remote::{Partitions, RemoteCommand as _};
use tokio_util::sync::CancellationToken;

use crate::{
    Result,
    cluster_runtime::{
        MIN_NAP, OVERTAKEN, Runtime, SWEEP, database_failed, or_pause, partitions_name, pause,
    },
    link::cluster_link::ClusterLink,
    worker::Worker,
};

/// Longer than the command can take: after this, another worker takes the turn of one that died.
const PATIENCE: Duration = Duration::from_mins(2);
/// The retry interval after a failure, unless the regular interval is shorter.
const TRY_AGAIN: Duration = Duration::from_mins(1);
/// The longest sleep, so that the loop shows that it is alive.
const LONGEST_NAP: Duration = Duration::from_mins(1);

impl<L: ClusterLink, S: WorkStore> Worker<L, S> {
    /// Reads the partitions of one cluster when they are due, one worker at a time, and what its jobs held.
    pub(crate) async fn learn(self: Arc<Self>, runtime: Arc<Runtime<L>>, stop: CancellationToken) {
        let name = partitions_name(&runtime);
        while !stop.is_cancelled() {
            self.beat(&runtime, &name);
            let learned = self.learn_if_due(&runtime).await;
            if or_pause("reading partitions", learned, &stop).await.is_none() {
                continue;
            }
            let accounted = self.account(&runtime).await;
            if or_pause("reading allocations", accounted, &stop).await.is_none_or(|jobs| jobs > 0) {
                continue;
            }
            let due = self.store.next_partitions_in(&runtime.target.cluster.name).await.ok().flatten();
            pause(due.unwrap_or(SWEEP).clamp(MIN_NAP, LONGEST_NAP), &stop).await;
        }
    }

    /// Returns whether the command was sent.
    pub(crate) async fn learn_if_due(&self, runtime: &Runtime<L>) -> Result<bool> {
        let cluster = &runtime.target.cluster.name;
        if !self.store.take_partitions_turn(cluster, PATIENCE).await? {
            return Ok(false);
        }
        if !self.is_still_meant(runtime).await? {
            self.store
                .record_partitions_unanswered(cluster, "not asked yet", OVERTAKEN, self.clock.now())
                .await?;
            return Ok(false);
        }
        let budget = runtime.target.cluster.rpc_budget;
        let affordable =
            budget.map_or(Duration::ZERO, |budget| budget.background_interval(Partitions.rpcs()));
        let every = self.settings.partitions_every.max(affordable);
        let answer = runtime.target.link.call(&Partitions).await;
        let now = self.clock.now();
        match answer {
            Ok(answer) => {
                if answer.dropped > 0 {
                    tracing::warn!(cluster.name = %cluster, dropped = answer.dropped, "rows of sinfo could not be read");
                }
                self.store.record_partitions(cluster, &answer, every, now).await?;
            }
            Err(error) => {
                tracing::warn!(cluster.name = %cluster, %error, "the partitions could not be read");
                let again_in = TRY_AGAIN.min(every);
                self.store.record_partitions_unanswered(cluster, &error.to_string(), again_in, now).await?;
            }
        }
        Ok(true)
    }

    /// How many nodes each job can spare, if the partitions were read recently.
    pub(crate) async fn spare_nodes(&self, runtime: &Runtime<L>, jobs: &[&Job]) -> HashMap<JobId, usize> {
        if jobs.is_empty() {
            return HashMap::new();
        }
        let known = self.store.partitions().await.unwrap_or_else(|error| {
            database_failed("reading the partitions", &error);
            HashMap::new()
        });
        let said = known.get(&runtime.target.cluster.name).and_then(|known| known.limits(self.clock.now()));
        let spare = |job: &&Job| Some((job.id, said.as_ref()?.spare_nodes(&job.spec)?));
        jobs.iter().filter_map(spare).collect()
    }
}
