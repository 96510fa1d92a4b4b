//! What the jobs of a cluster held: read from accounting when they have ended.

use std::time::Duration;

use persistence::WorkStore;
use remote::{Accounted, Allocations};

use crate::{Result, cluster_runtime::Runtime, link::cluster_link::ClusterLink, worker::Worker};

/// The most Slurm jobs in one question.
const AT_ONCE: u32 = 200;
/// Longer than the command can take: after this, another worker asks about the jobs of one that died.
const PATIENCE: Duration = Duration::from_mins(2);
/// When a job that is over is asked about again: accounting may lag, or correct what it told.
const SOON: Duration = Duration::from_mins(5);
/// When it is asked about for the last time, after the first question.
const LATE: Duration = Duration::from_hours(1);

impl<L: ClusterLink, S: WorkStore> Worker<L, S> {
    /// Asks accounting about Slurm jobs that have ended. Returns about how many it answered.
    pub(crate) async fn account(&self, runtime: &Runtime<L>) -> Result<usize> {
        let cluster = &runtime.target.cluster.name;
        let jobs = self.store.take_unaccounted(cluster, AT_ONCE, PATIENCE).await?;
        if jobs.is_empty() || !self.is_still_meant(runtime).await? {
            return Ok(0);
        }
        let question = Allocations { jobs };
        let answer = runtime.target.link.call(&question).await;
        let asked = answer.as_ref().map_or(0, |_| question.jobs.len());
        let told = answer.unwrap_or_else(|error| {
            // They are asked about again, less and less often: a cluster may have no accounting.
            tracing::debug!(cluster.name = %cluster, %error, "accounting did not tell what jobs held");
            vec![Accounted::default(); question.jobs.len()]
        });
        self.store.record_allocations(cluster, &question.jobs, &told, SOON, LATE).await?;
        Ok(asked)
    }
}
