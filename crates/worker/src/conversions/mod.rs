//! The lane of conversions: leases due conversions and takes one step of each, one remote command for each kind.

mod look;
mod submit;

use std::{collections::HashSet, sync::Arc, time::Duration};

use chrono::TimeDelta;
use domain::{Conversion, ConversionStep, ConversionTransition, Demand, conversion_step};
use persistence::{ConversionLease, ConversionRecord, LeaseTerms, WorkStore};
use slurm::SlurmJobId;
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use crate::{
    Result,
    cluster_runtime::{OVERTAKEN, Runtime, conversions_name, nap, or_pause, sleep_or_wake},
    keep_alive::keep_alive,
    link::cluster_link::{ClusterLink, LinkError},
    steps::record::unless_empty,
    worker::Worker,
};

/// How often a conversion in Slurm is checked for jobs that still wait for it.
const LOOK_ROUND: Duration = Duration::from_secs(30);
/// After a command without an answer.
const TRY_AGAIN: TimeDelta = TimeDelta::seconds(5);
/// A due conversion, with the jobs that wait for it.
type Due = (Conversion, Demand);

impl<L: ClusterLink, S: WorkStore> Worker<L, S> {
    /// The lane of conversions: takes what is due, then sleeps until something is due.
    pub(crate) async fn convert(self: Arc<Self>, runtime: Arc<Runtime<L>>, stop: CancellationToken) {
        let name = conversions_name(&runtime);
        while !stop.is_cancelled() {
            self.beat(&runtime, &name);
            let taken = self.take_conversions(&runtime).await;
            if or_pause("converting images", taken, &stop).await != Some(0) {
                continue;
            }
            let due = self.store.next_conversion_in(&runtime.target.cluster.name).await.ok().flatten();
            sleep_or_wake(&runtime.conversion_due, nap(due), &stop).await;
        }
    }

    /// Takes one step of every due conversion. Returns their number.
    pub(crate) async fn take_conversions(&self, runtime: &Runtime<L>) -> Result<usize> {
        let terms = LeaseTerms { duration: self.settings.lease, limit: self.settings.batch };
        let cluster = &runtime.target.cluster.name;
        let since = self.clock.uptime();
        let mut lease = self.store.acquire_conversions(cluster, self.ids.lease(), terms).await?;
        self.hear(lease.granted_on, since);
        let conversions = std::mem::take(&mut lease.conversions);
        if conversions.is_empty() {
            return Ok(0);
        }
        if !self.is_still_meant(runtime).await? {
            let all: Vec<_> = conversions.iter().map(|(conversion, _)| (conversion.id, None)).collect();
            self.store.put_off_conversions(&lease, &all, Some(OVERTAKEN)).await?;
            return Ok(0);
        }
        let taken = conversions.len();
        let work = self.convert_step(runtime, &lease, conversions);
        let duration = self.settings.lease;
        let extend = || self.store.extend_conversions(&lease, duration);
        keep_alive(&*self.clock, since, duration, extend, work).await.transpose()?;
        Ok(taken)
    }

    async fn convert_step(
        &self,
        runtime: &Runtime<L>,
        lease: &ConversionLease,
        conversions: Vec<Due>,
    ) -> Result {
        let (mut check, mut submit, mut locate, mut cancel, mut conclude) =
            (vec![], vec![], vec![], vec![], vec![]);
        let (mut shelved, mut watched, mut rested) = (vec![], vec![], vec![]);
        for (conversion, demand) in conversions {
            match conversion_step(&conversion, &demand) {
                ConversionStep::Check => check.push((conversion, demand)),
                ConversionStep::Submit => submit.push(conversion),
                ConversionStep::Locate => locate.push(conversion),
                ConversionStep::Cancel(why) => cancel.push((conversion, why)),
                ConversionStep::Conclude => conclude.push((conversion, demand)),
                ConversionStep::Shelve => shelved.push(conversion.shelved()),
                ConversionStep::Rest if conversion.is_in_slurm() => watched.push((conversion.id, None)),
                ConversionStep::Rest => rested.push((conversion.id, None)),
            }
        }
        self.store_moved(runtime, lease, shelved).await?;
        self.store.put_off_conversions(lease, &watched, Some(LOOK_ROUND)).await?;
        self.store.put_off_conversions(lease, &rested, None).await?;
        let (checked, submitted, located, canceled, concluded) = tokio::join!(
            unless_empty(check, |due| self.check_images(runtime, lease, due)),
            unless_empty(submit, |due| self.submit_conversions(runtime, lease, due)),
            self.locate_conversions(runtime, lease, locate),
            unless_empty(cancel, |due| self.cancel_conversions(runtime, lease, due)),
            unless_empty(conclude, |due| self.conclude_conversions(runtime, lease, due)),
        );
        checked.and(submitted).and(located).and(canceled).and(concluded)
    }

    /// Stores conversions after a step and releases their lease.
    async fn store_moved(
        &self,
        runtime: &Runtime<L>,
        lease: &ConversionLease,
        moved: Vec<ConversionTransition>,
    ) -> Result {
        self.store_conversions(runtime, lease, moved, true).await?;
        Ok(())
    }

    /// Stores conversions and wakes the jobs that wait for them. Returns the stored ones; the lease of the others was lost.
    async fn store_conversions(
        &self,
        runtime: &Runtime<L>,
        lease: &ConversionLease,
        moved: Vec<ConversionTransition>,
        release: bool,
    ) -> Result<HashSet<Uuid>> {
        if moved.is_empty() {
            return Ok(HashSet::new());
        }
        let record = |ConversionTransition { conversion, due_at }| ConversionRecord { conversion, due_at };
        let records: Vec<_> = moved.into_iter().map(record).collect();
        let cluster = &runtime.target.cluster.name;
        let stored =
            self.store.record_conversions(lease, cluster, &records, release, self.clock.now()).await?;
        for ConversionRecord { conversion, .. } in &records {
            if stored.contains(&conversion.id) {
                say(conversion);
            } else {
                tracing::warn!(image = %conversion.image, "the lease was lost; the result of a conversion's step is dropped");
            }
        }
        runtime.wake_lanes();
        Ok(stored)
    }

    /// Stores unchanged conversions, to retry soon because the cluster did not answer.
    async fn store_unanswered(
        &self,
        runtime: &Runtime<L>,
        lease: &ConversionLease,
        due: Vec<Due>,
        error: &LinkError,
        what: &str,
    ) -> Result {
        warn_of(due.iter().map(|(one, _)| one), error, what);
        let due_at = Some(self.clock.now() + TRY_AGAIN);
        let moved = due.into_iter().map(|(mut conversion, _)| {
            conversion.message = format!("The image cannot be looked for at the moment: {error}");
            ConversionTransition { conversion, due_at }
        });
        self.store_moved(runtime, lease, moved.collect()).await
    }
}

/// Logs a conversion.
pub(crate) fn say(conversion: &Conversion) {
    let run = conversion.run.as_ref();
    tracing::info!(
        image = %conversion.image, conversion.state = %conversion.state, conversion.run = run.map(|run| run.no.get()),
        slurm.job_id = run.and_then(|run| run.slurm_id).map(SlurmJobId::get), "{}", conversion.message
    );
}

/// Logs a failed command for each of its conversions.
fn warn_of<'a>(conversions: impl IntoIterator<Item = &'a Conversion>, error: &LinkError, what: &str) {
    for conversion in conversions {
        tracing::warn!(image = %conversion.image, error = %error, "{what}");
    }
}
