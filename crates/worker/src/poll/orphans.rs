//! Slurm jobs with our names that the database does not expect. The answer of the regular poll shows them.

use std::collections::{HashMap, HashSet};

use chrono::TimeDelta;
use domain::{ClusterName, OrphanKind, Record, Review, Stray, Timestamp, orphan_kind, review_orphans};
use persistence::{PollLease, WorkStore};
use remote::{AttemptKey, Cancel, Poll, PollAnswer, SqueueOutcome};
use slurm::{QueueRow, SlurmJobId, SlurmState};

use crate::{Result, cluster_runtime::Runtime, link::cluster_link::ClusterLink, worker::Worker};

/// How often a cluster without our jobs is polled for orphans.
const IDLE_LOOK: TimeDelta = TimeDelta::minutes(10);

/// Whether a cluster without our jobs is polled for orphans.
pub(crate) fn is_orphan_poll_due(lease: &PollLease, now: Timestamp) -> bool {
    let pending = lease.orphans.iter().any(|orphan| match orphan.kind {
        OrphanKind::Superseded | OrphanKind::Copy | OrphanKind::Deleted => true,
        OrphanKind::Newer | OrphanKind::Unknown => false,
    });
    pending || lease.polled_at.is_some_and(|at| now - at >= IDLE_LOOK)
}

impl<L: ClusterLink, S: WorkStore> Worker<L, S> {
    /// Compares the queue with the database and stores the orphans. Returns the Slurm jobs to cancel after the poll is
    /// recorded.
    pub(crate) async fn look_for_orphans(
        &self,
        runtime: &Runtime<L>,
        lease: &PollLease,
        asked: &Poll,
        answer: &PollAnswer,
        now: Timestamp,
    ) -> Result<Vec<(SlurmJobId, AttemptKey)>> {
        let SqueueOutcome::Answered(rows) = &answer.squeue else { return Ok(Vec::new()) };
        let watched: HashSet<(SlurmJobId, &str)> =
            asked.jobs.iter().map(|job| (job.id, job.key.name.as_str())).collect();
        let others = rows.values().filter(|row| !watched.contains(&(row.id, row.name.as_str())));
        let strays: Vec<Stray> = others.filter_map(Stray::of).collect();
        if strays.is_empty() && lease.orphans.is_empty() {
            return Ok(Vec::new());
        }
        let cluster = &runtime.target.cluster;
        let origins: Vec<_> = strays.iter().map(|stray| stray.origin).collect();
        let records = self.store.records_of(&cluster.name, &origins).await?;
        let kind = |stray: Stray| {
            let record = records.get(&stray.origin).copied()?;
            let kind = orphan_kind(&stray, record, runs(record, &stray, rows))?;
            Some((stray, kind))
        };
        let found = strays.into_iter().filter_map(kind).collect();
        let review = review_orphans(&lease.orphans, found, cluster.retries.cancel_unknown_jobs, now);
        if review.orphans != lease.orphans {
            self.store.record_orphans(lease, &review.orphans, &review.condemned, now).await?;
        }
        say_orphans(&cluster.name, &review);
        let named = review.orphans.iter().filter(|orphan| review.cancel.contains(&orphan.slurm_id));
        Ok(named.filter_map(|orphan| Some((orphan.slurm_id, orphan.key()?))).collect())
    }

    /// A later poll repeats this for orphans that are still there.
    pub(crate) async fn cancel_orphans(&self, runtime: &Runtime<L>, jobs: Vec<(SlurmJobId, AttemptKey)>) {
        if jobs.is_empty() {
            return;
        }
        let why = match runtime.target.link.call(&Cancel { jobs, ..Cancel::default() }).await {
            Ok(answer) => answer.refused.map(|failure| failure.excerpt),
            Err(error) => Some(error.to_string()),
        };
        if let Some(error) = why {
            tracing::warn!(cluster.name = %runtime.target.cluster.name, error, "orphans could not be canceled; retrying");
        }
    }
}

fn say_orphans(cluster: &ClusterName, review: &Review) {
    let count = |name: &'static str, kind: OrphanKind| {
        metrics::counter!(name, "cluster" => cluster.to_string(), "kind" => <&str>::from(kind)).increment(1);
    };
    for orphan in &review.orphans {
        if review.found.contains(&orphan.slurm_id) {
            tracing::warn!(cluster.name = %cluster, kind = %orphan.kind, "found an orphan: {}", orphan.sentence());
            count("tao_slurm_orphans_found_total", orphan.kind);
        }
        if review.condemned.contains(&orphan.slurm_id) {
            tracing::warn!(cluster.name = %cluster, kind = %orphan.kind, "canceling an orphan: {}", orphan.sentence());
            count("tao_slurm_orphans_canceled_total", orphan.kind);
        }
    }
}

/// Whether the queue shows the attempt's own Slurm job as running.
fn runs(record: Record, stray: &Stray, rows: &HashMap<SlurmJobId, QueueRow>) -> bool {
    let Record::Known { slurm_id: Some(id), .. } = record else { return false };
    rows.get(&id).is_some_and(|row| row.name == stray.name.as_str() && row.state == SlurmState::Running)
}
