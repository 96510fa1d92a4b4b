//! The database behind the traits: each call is the method of [`Store`] of the same name.

use std::{
    collections::{HashMap, HashSet},
    time::Duration,
};

use domain::{
    Abandoned, ActiveJob, ClusterName, Conversion, Job, JobId, ObservedChange, Origin, Orphan, Record,
    Secrets, Timestamp,
};
use remote::PartitionsAnswer;
use slurm::SlurmJobId;
use uuid::Uuid;

use super::{
    DueJobs, DueNotices, ImageConversions, Incarnations, OrphanRecords, PartitionTurns, PollTurns,
    StepRecords,
};
use crate::{
    clusters::partitions::KnownPartitions,
    conversions::{ConversionLease, ConversionRecord, ImageRequest},
    error::StoreError,
    jobs::{
        leases::{Lane, Lease, LeaseTerms},
        purges::Remains,
        steps::StepRecord,
    },
    listen::{DueListener, DueNotice},
    polls::turns::{PollLease, PollResult},
    store::Store,
};

impl DueNotices for DueListener {
    async fn next(&mut self) -> Result<Option<DueNotice>, StoreError> {
        Self::next(self).await
    }
}

impl DueJobs for Store {
    type Notices = DueListener;

    async fn listen_due(&self) -> Result<DueListener, StoreError> {
        Self::listen_due(self).await
    }

    async fn acquire_due(
        &self,
        cluster: &ClusterName,
        lane: Lane,
        token: Uuid,
        terms: LeaseTerms,
    ) -> Result<Lease, StoreError> {
        Self::acquire_due(self, cluster, lane, token, terms).await
    }

    async fn extend(&self, lease: &Lease, duration: Duration) -> Result<(), StoreError> {
        Self::extend(self, lease, duration).await
    }

    async fn put_off(
        &self,
        lease: &Lease,
        jobs: &[Job],
        again_in: Option<Duration>,
    ) -> Result<(), StoreError> {
        Self::put_off(self, lease, jobs, again_in).await
    }

    async fn next_due_in(&self, cluster: &ClusterName, lane: Lane) -> Result<Option<Duration>, StoreError> {
        Self::next_due_in(self, cluster, lane).await
    }
}

impl StepRecords for Store {
    async fn open_secrets(
        &self,
        jobs: &[JobId],
    ) -> Result<HashMap<JobId, Result<Secrets, StoreError>>, StoreError> {
        Self::open_secrets(self, jobs).await
    }

    async fn remains(&self, jobs: &[JobId]) -> Result<Vec<Remains>, StoreError> {
        Self::remains(self, jobs).await
    }

    async fn record_intents(
        &self,
        lease: &Lease,
        steps: &[StepRecord],
        now: Timestamp,
    ) -> Result<HashSet<JobId>, StoreError> {
        Self::record_intents(self, lease, steps, now).await
    }

    async fn record_scripts(&self, scripts: &[(JobId, u32, String)]) -> Result<(), StoreError> {
        Self::record_scripts(self, scripts).await
    }

    async fn record_steps(
        &self,
        lease: &Lease,
        steps: &[StepRecord],
        now: Timestamp,
    ) -> Result<HashSet<JobId>, StoreError> {
        Self::record_steps(self, lease, steps, now).await
    }

    async fn delete_purged(&self, lease: &Lease, jobs: &[JobId]) -> Result<(), StoreError> {
        Self::delete_purged(self, lease, jobs).await
    }

    async fn put_off_purges(&self, lease: &Lease, jobs: &[(JobId, Duration)]) -> Result<(), StoreError> {
        Self::put_off_purges(self, lease, jobs).await
    }
}

impl PollTurns for Store {
    async fn acquire_poll(
        &self,
        cluster: &ClusterName,
        token: Uuid,
        duration: Duration,
    ) -> Result<Option<PollLease>, StoreError> {
        Self::acquire_poll(self, cluster, token, duration).await
    }

    async fn extend_poll(&self, lease: &PollLease, duration: Duration) -> Result<(), StoreError> {
        Self::extend_poll(self, lease, duration).await
    }

    async fn active_jobs(&self, cluster: &ClusterName) -> Result<Vec<ActiveJob>, StoreError> {
        Self::active_jobs(self, cluster).await
    }

    async fn jobs_as_asked(&self, asked: &[&ActiveJob]) -> Result<Vec<Job>, StoreError> {
        Self::jobs_as_asked(self, asked).await
    }

    async fn record_observations(
        &self,
        lease: &PollLease,
        changed: &[ObservedChange],
        now: Timestamp,
    ) -> Result<u64, StoreError> {
        Self::record_observations(self, lease, changed, now).await
    }

    async fn record_poll(
        &self,
        lease: &PollLease,
        result: PollResult<'_>,
        interval: Duration,
        now: Timestamp,
    ) -> Result<(), StoreError> {
        Self::record_poll(self, lease, result, interval, now).await
    }

    async fn poll_soon(&self, cluster: &ClusterName, pace: Duration) -> Result<(), StoreError> {
        Self::poll_soon(self, cluster, pace).await
    }

    async fn next_poll_in(&self, cluster: &ClusterName) -> Result<Option<Duration>, StoreError> {
        Self::next_poll_in(self, cluster).await
    }
}

impl OrphanRecords for Store {
    async fn records_of(
        &self,
        cluster: &ClusterName,
        origins: &[Origin],
    ) -> Result<HashMap<Origin, Record>, StoreError> {
        Self::records_of(self, cluster, origins).await
    }

    async fn record_orphans(
        &self,
        lease: &PollLease,
        orphans: &[Orphan],
        condemned: &[SlurmJobId],
        now: Timestamp,
    ) -> Result<(), StoreError> {
        Self::record_orphans(self, lease, orphans, condemned, now).await
    }
}

impl ImageConversions for Store {
    async fn want_images(
        &self,
        cluster: &ClusterName,
        wishes: &[ImageRequest],
    ) -> Result<Vec<Conversion>, StoreError> {
        Self::want_images(self, cluster, wishes).await
    }

    async fn reopen_conversions(
        &self,
        cluster: &ClusterName,
        conversions: &[&Conversion],
    ) -> Result<(), StoreError> {
        Self::reopen_conversions(self, cluster, conversions).await
    }

    async fn look_after_conversions(&self, cluster: &ClusterName, jobs: &[JobId]) -> Result<(), StoreError> {
        Self::look_after_conversions(self, cluster, jobs).await
    }

    async fn wake_overtaken(&self, jobs: &[(JobId, &Conversion)]) -> Result<(), StoreError> {
        Self::wake_overtaken(self, jobs).await
    }

    async fn acquire_conversions(
        &self,
        cluster: &ClusterName,
        token: Uuid,
        terms: LeaseTerms,
    ) -> Result<ConversionLease, StoreError> {
        Self::acquire_conversions(self, cluster, token, terms).await
    }

    async fn extend_conversions(
        &self,
        lease: &ConversionLease,
        duration: Duration,
    ) -> Result<(), StoreError> {
        Self::extend_conversions(self, lease, duration).await
    }

    async fn put_off_conversions(
        &self,
        lease: &ConversionLease,
        conversions: &[(Uuid, Option<Abandoned>)],
        again_in: Option<Duration>,
    ) -> Result<(), StoreError> {
        Self::put_off_conversions(self, lease, conversions, again_in).await
    }

    async fn record_conversions(
        &self,
        lease: &ConversionLease,
        cluster: &ClusterName,
        records: &[ConversionRecord],
        release: bool,
        now: Timestamp,
    ) -> Result<HashSet<Uuid>, StoreError> {
        Self::record_conversions(self, lease, cluster, records, release, now).await
    }

    async fn next_conversion_in(&self, cluster: &ClusterName) -> Result<Option<Duration>, StoreError> {
        Self::next_conversion_in(self, cluster).await
    }

    async fn active_conversions(&self, cluster: &ClusterName) -> Result<Vec<Conversion>, StoreError> {
        Self::active_conversions(self, cluster).await
    }

    async fn record_seen_conversions(
        &self,
        cluster: &ClusterName,
        conversions: &[Conversion],
    ) -> Result<(), StoreError> {
        Self::record_seen_conversions(self, cluster, conversions).await
    }
}

impl PartitionTurns for Store {
    async fn take_partitions_turn(
        &self,
        cluster: &ClusterName,
        patience: Duration,
    ) -> Result<bool, StoreError> {
        Self::take_partitions_turn(self, cluster, patience).await
    }

    async fn record_partitions(
        &self,
        cluster: &ClusterName,
        answer: &PartitionsAnswer,
        interval: Duration,
        now: Timestamp,
    ) -> Result<(), StoreError> {
        Self::record_partitions(self, cluster, answer, interval, now).await
    }

    async fn record_partitions_unanswered(
        &self,
        cluster: &ClusterName,
        error: &str,
        again_in: Duration,
        now: Timestamp,
    ) -> Result<(), StoreError> {
        Self::record_partitions_unanswered(self, cluster, error, again_in, now).await
    }

    async fn next_partitions_in(&self, cluster: &ClusterName) -> Result<Option<Duration>, StoreError> {
        Self::next_partitions_in(self, cluster).await
    }

    async fn partitions(&self) -> Result<HashMap<ClusterName, KnownPartitions>, StoreError> {
        Self::partitions(self).await
    }
}

impl Incarnations for Store {
    async fn is_incarnation(&self, cluster: &ClusterName, incarnation: i64) -> Result<bool, StoreError> {
        Self::is_incarnation(self, cluster, incarnation).await
    }
}
