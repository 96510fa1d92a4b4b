//! The right to poll, what polls saw, and what nothing watches.

use std::{collections::HashMap, time::Duration};

use domain::{ActiveJob, ClusterName, Job, ObservedChange, Origin, Orphan, Record, Timestamp};
use persistence::{Observations, OrphanRecords, PollLease, PollResult, PollTurns, StoreError, WorkStore};
use slurm::SlurmJobId;
use uuid::Uuid;

use super::{Gate, GatedStore};

impl<S: WorkStore, G: Gate> PollTurns for GatedStore<S, G> {
    async fn acquire_poll(
        &self,
        cluster: &ClusterName,
        token: Uuid,
        duration: Duration,
    ) -> Result<Option<PollLease>, StoreError> {
        self.gate.pass("acquire_poll", self.store.acquire_poll(cluster, token, duration)).await
    }

    async fn extend_poll(&self, lease: &PollLease, duration: Duration) -> Result<(), StoreError> {
        self.gate.pass("extend_poll", self.store.extend_poll(lease, duration)).await
    }

    async fn record_poll(
        &self,
        lease: &PollLease,
        result: PollResult<'_>,
        interval: Duration,
        now: Timestamp,
    ) -> Result<(), StoreError> {
        self.gate.pass("record_poll", self.store.record_poll(lease, result, interval, now)).await
    }

    async fn poll_soon(&self, cluster: &ClusterName, pace: Duration) -> Result<(), StoreError> {
        self.gate.pass("poll_soon", self.store.poll_soon(cluster, pace)).await
    }

    async fn next_poll_in(&self, cluster: &ClusterName) -> Result<Option<Duration>, StoreError> {
        self.gate.pass("next_poll_in", self.store.next_poll_in(cluster)).await
    }
}

impl<S: WorkStore, G: Gate> Observations for GatedStore<S, G> {
    async fn active_jobs(&self, cluster: &ClusterName) -> Result<Vec<ActiveJob>, StoreError> {
        self.gate.pass("active_jobs", self.store.active_jobs(cluster)).await
    }

    async fn unchanged_jobs(&self, asked: &[&ActiveJob]) -> Result<Vec<Job>, StoreError> {
        self.gate.pass("unchanged_jobs", self.store.unchanged_jobs(asked)).await
    }

    async fn record_observations(
        &self,
        lease: &PollLease,
        changed: &[ObservedChange],
        now: Timestamp,
    ) -> Result<u64, StoreError> {
        self.gate.pass("record_observations", self.store.record_observations(lease, changed, now)).await
    }
}

impl<S: WorkStore, G: Gate> OrphanRecords for GatedStore<S, G> {
    async fn records_of(
        &self,
        cluster: &ClusterName,
        origins: &[Origin],
    ) -> Result<HashMap<Origin, Record>, StoreError> {
        self.gate.pass("records_of", self.store.records_of(cluster, origins)).await
    }

    async fn record_orphans(
        &self,
        lease: &PollLease,
        orphans: &[Orphan],
        condemned: &[SlurmJobId],
        now: Timestamp,
    ) -> Result<(), StoreError> {
        self.gate.pass("record_orphans", self.store.record_orphans(lease, orphans, condemned, now)).await
    }
}
