//! Both ports of a worker with a gate before and behind each call: what a test stops, loses or delays there is up to the
//! gate. A call that is added to a port has to be added here, and so passes the gate, too.

mod incarnations;
mod polls;
mod rpc_budgets;
mod tasks;

use std::{
    collections::{HashMap, HashSet},
    fmt::Debug,
    future::Future,
    time::Duration,
};

use domain::{CachedImage, ClusterName, FileFault, Job, JobId, NeededJob, Secrets, Timestamp, Transition};
use persistence::{
    AllocationRecords, DueJobs, ImageRecord, ImageRequest, Images, KnownPartitions, Lane, Lease, LeaseTerms,
    Needs, PartitionTurns, PurgeTarget, Purges, StepRecords, StoreError, Wait, WorkStore,
};
use remote::{Accounted, AttemptKey, PartitionsAnswer, RemoteCommand};
use slurm::{RemotePath, SlurmJobId};
use uuid::Uuid;

use crate::{ClusterLink, LinkError};

/// Stands before and behind each call.
pub(super) trait Gate: Clone + Debug + Send + Sync + 'static {
    fn pass<T: Send, E: PortError>(
        &self,
        call: &'static str,
        work: impl Future<Output = Result<T, E>> + Send,
    ) -> impl Future<Output = Result<T, E>> + Send;
}

/// Which port a call is of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Port {
    Store,
    Link,
}

/// What a port says when a call fails on the way.
pub(super) trait PortError: Debug + Send {
    const PORT: Port;

    /// On the way there, or on the way back: the caller of a database cannot tell.
    fn failed() -> Self;
}

impl PortError for StoreError {
    const PORT: Port = Port::Store;

    fn failed() -> Self {
        Self::Driver(sqlx::Error::PoolTimedOut)
    }
}

impl PortError for LinkError {
    const PORT: Port = Port::Link;

    fn failed() -> Self {
        Self::Lost { why: "no trailer".to_owned() }
    }
}

/// A store behind a gate.
#[derive(Debug, Clone)]
pub(super) struct GatedStore<S, G> {
    pub(super) store: S,
    pub(super) gate: G,
}

/// A way to a cluster behind a gate.
#[derive(Debug, Clone)]
pub(super) struct GatedLink<L, G> {
    pub(super) link: L,
    pub(super) gate: G,
}

impl<S: WorkStore, G: Gate> WorkStore for GatedStore<S, G> {}

impl<S: WorkStore, G: Gate> DueJobs for GatedStore<S, G> {
    type Notices = S::Notices;

    async fn listen_due(&self) -> Result<Self::Notices, StoreError> {
        self.gate.pass("listen_due", self.store.listen_due()).await
    }

    async fn acquire_due(
        &self,
        cluster: &ClusterName,
        lane: Lane,
        token: Uuid,
        terms: LeaseTerms,
    ) -> Result<Lease, StoreError> {
        self.gate.pass("acquire_due", self.store.acquire_due(cluster, lane, token, terms)).await
    }

    async fn extend(&self, lease: &Lease, duration: Duration) -> Result<(), StoreError> {
        self.gate.pass("extend", self.store.extend(lease, duration)).await
    }

    async fn put_off(
        &self,
        lease: &Lease,
        jobs: &[Job],
        again_in: Option<Duration>,
    ) -> Result<(), StoreError> {
        self.gate.pass("put_off", self.store.put_off(lease, jobs, again_in)).await
    }

    async fn next_due_in(&self, cluster: &ClusterName, lane: Lane) -> Result<Option<Duration>, StoreError> {
        self.gate.pass("next_due_in", self.store.next_due_in(cluster, lane)).await
    }
}

impl<S: WorkStore, G: Gate> Needs for GatedStore<S, G> {
    async fn needed(&self, jobs: &[JobId]) -> Result<HashMap<JobId, Vec<NeededJob>>, StoreError> {
        self.gate.pass("needed", self.store.needed(jobs)).await
    }
}

impl<S: WorkStore, G: Gate> StepRecords for GatedStore<S, G> {
    async fn open_secrets(
        &self,
        jobs: &[JobId],
    ) -> Result<HashMap<JobId, Result<Secrets, StoreError>>, StoreError> {
        self.gate.pass("open_secrets", self.store.open_secrets(jobs)).await
    }

    async fn record_intents(
        &self,
        lease: &Lease,
        steps: &[Transition],
        now: Timestamp,
    ) -> Result<HashSet<JobId>, StoreError> {
        self.gate.pass("record_intents", self.store.record_intents(lease, steps, now)).await
    }

    async fn record_scripts(&self, scripts: &[(JobId, u32, Option<String>)]) -> Result<(), StoreError> {
        self.gate.pass("record_scripts", self.store.record_scripts(scripts)).await
    }

    async fn record_steps(
        &self,
        lease: &Lease,
        steps: &[Transition],
        now: Timestamp,
    ) -> Result<HashSet<JobId>, StoreError> {
        self.gate.pass("record_steps", self.store.record_steps(lease, steps, now)).await
    }
}

impl<S: WorkStore, G: Gate> Purges for GatedStore<S, G> {
    async fn purge_targets(&self, jobs: &[JobId]) -> Result<Vec<PurgeTarget>, StoreError> {
        self.gate.pass("purge_targets", self.store.purge_targets(jobs)).await
    }

    async fn delete_purged(&self, lease: &Lease, jobs: &[JobId]) -> Result<(), StoreError> {
        self.gate.pass("delete_purged", self.store.delete_purged(lease, jobs)).await
    }

    async fn put_off_purges(&self, lease: &Lease, jobs: &[(JobId, Duration)]) -> Result<(), StoreError> {
        self.gate.pass("put_off_purges", self.store.put_off_purges(lease, jobs)).await
    }
}

impl<S: WorkStore, G: Gate> Images for GatedStore<S, G> {
    async fn request_images(
        &self,
        cluster: &ClusterName,
        requests: &[ImageRequest],
    ) -> Result<Vec<CachedImage>, StoreError> {
        self.gate.pass("request_images", self.store.request_images(cluster, requests)).await
    }

    async fn record_images(
        &self,
        cluster: &ClusterName,
        records: &[ImageRecord],
    ) -> Result<HashSet<RemotePath>, StoreError> {
        self.gate.pass("record_images", self.store.record_images(cluster, records)).await
    }

    async fn await_conversions(
        &self,
        cluster: &ClusterName,
        waits: &[Wait],
        now: Timestamp,
    ) -> Result<(), StoreError> {
        self.gate.pass("await_conversions", self.store.await_conversions(cluster, waits, now)).await
    }

    async fn give_up_conversions(
        &self,
        cluster: &ClusterName,
        conversions: &[JobId],
        now: Timestamp,
    ) -> Result<(), StoreError> {
        self.gate.pass("give_up_conversions", self.store.give_up_conversions(cluster, conversions, now)).await
    }

    async fn distrust_files(
        &self,
        cluster: &ClusterName,
        files: &[(&RemotePath, FileFault)],
    ) -> Result<(), StoreError> {
        self.gate.pass("distrust_files", self.store.distrust_files(cluster, files)).await
    }
}

impl<S: WorkStore, G: Gate> PartitionTurns for GatedStore<S, G> {
    async fn take_partitions_turn(
        &self,
        cluster: &ClusterName,
        patience: Duration,
    ) -> Result<bool, StoreError> {
        self.gate.pass("take_partitions_turn", self.store.take_partitions_turn(cluster, patience)).await
    }

    async fn record_partitions(
        &self,
        cluster: &ClusterName,
        answer: &PartitionsAnswer,
        interval: Duration,
        now: Timestamp,
    ) -> Result<(), StoreError> {
        self.gate
            .pass("record_partitions", self.store.record_partitions(cluster, answer, interval, now))
            .await
    }

    async fn record_partitions_unanswered(
        &self,
        cluster: &ClusterName,
        error: &str,
        again_in: Duration,
        now: Timestamp,
    ) -> Result<(), StoreError> {
        self.gate
            .pass(
                "record_partitions_unanswered",
                self.store.record_partitions_unanswered(cluster, error, again_in, now),
            )
            .await
    }

    async fn partitions(&self) -> Result<HashMap<ClusterName, KnownPartitions>, StoreError> {
        self.gate.pass("partitions", self.store.partitions()).await
    }

    async fn next_partitions_in(&self, cluster: &ClusterName) -> Result<Option<Duration>, StoreError> {
        self.gate.pass("next_partitions_in", self.store.next_partitions_in(cluster)).await
    }
}

impl<S: WorkStore, G: Gate> AllocationRecords for GatedStore<S, G> {
    async fn take_unaccounted(
        &self,
        cluster: &ClusterName,
        most: u32,
        patience: Duration,
    ) -> Result<Vec<(SlurmJobId, AttemptKey)>, StoreError> {
        self.gate.pass("take_unaccounted", self.store.take_unaccounted(cluster, most, patience)).await
    }

    async fn record_allocations(
        &self,
        cluster: &ClusterName,
        jobs: &[(SlurmJobId, AttemptKey)],
        told: &[Accounted],
        soon: Duration,
        late: Duration,
    ) -> Result<(), StoreError> {
        self.gate
            .pass("record_allocations", self.store.record_allocations(cluster, jobs, told, soon, late))
            .await
    }
}

impl<L: ClusterLink + Debug, G: Gate> ClusterLink for GatedLink<L, G> {
    async fn call<C: RemoteCommand>(&self, command: &C) -> Result<C::Output, LinkError> {
        self.gate.pass(C::NAME, self.link.call(command)).await
    }

    fn out_of_reach(&self) -> Option<LinkError> {
        self.link.out_of_reach()
    }
}
