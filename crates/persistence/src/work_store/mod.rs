//! What a worker asks of the database, by concern. [`Store`] answers in the service; tests may put another behind a
//! worker, or stand between the two.

mod of_store;

use std::{
    collections::{HashMap, HashSet},
    fmt::Debug,
    future::Future,
    time::Duration,
};

use domain::{
    Abandoned, ActiveJob, ClusterName, Conversion, Job, JobId, ObservedChange, Origin, Orphan, Record,
    Secrets, Timestamp,
};
use remote::PartitionsAnswer;
use slurm::SlurmJobId;
use uuid::Uuid;

use crate::{
    clusters::partitions::KnownPartitions,
    conversions::{ConversionLease, ConversionRecord, ImageRequest},
    error::StoreError,
    jobs::{
        leases::{Lane, Lease, LeaseTerms},
        purges::Remains,
        steps::StepRecord,
    },
    listen::DueNotice,
    polls::turns::{PollLease, PollResult},
};

/// A call of the database.
pub trait Call<T>: Future<Output = Result<T, StoreError>> + Send {}
impl<T, F: Future<Output = Result<T, StoreError>> + Send> Call<T> for F {}

/// All that a worker asks of the database. What each call does is said at the method of [`Store`](crate::Store) of the
/// same name.
pub trait WorkStore:
    DueJobs
    + StepRecords
    + PollTurns
    + OrphanRecords
    + ImageConversions
    + PartitionTurns
    + Incarnations
    + Clone
    + Debug
    + Send
    + Sync
    + 'static
{
}

impl<S> WorkStore for S where
    S: DueJobs
        + StepRecords
        + PollTurns
        + OrphanRecords
        + ImageConversions
        + PartitionTurns
        + Incarnations
        + Clone
        + Debug
        + Send
        + Sync
        + 'static
{
}

/// Hears of clusters that have something due.
pub trait DueNotices: Send {
    fn next(&mut self) -> impl Call<Option<DueNotice>>;
}

/// The right to take a step of a job.
pub trait DueJobs {
    type Notices: DueNotices;

    fn listen_due(&self) -> impl Call<Self::Notices>;
    fn acquire_due(
        &self,
        cluster: &ClusterName,
        lane: Lane,
        token: Uuid,
        terms: LeaseTerms,
    ) -> impl Call<Lease>;
    fn extend(&self, lease: &Lease, duration: Duration) -> impl Call<()>;
    fn put_off(&self, lease: &Lease, jobs: &[Job], again_in: Option<Duration>) -> impl Call<()>;
    fn next_due_in(&self, cluster: &ClusterName, lane: Lane) -> impl Call<Option<Duration>>;
}

/// What a step needs, and what came of it.
pub trait StepRecords {
    fn open_secrets(&self, jobs: &[JobId]) -> impl Call<HashMap<JobId, Result<Secrets, StoreError>>>;
    fn remains(&self, jobs: &[JobId]) -> impl Call<Vec<Remains>>;
    fn record_intents(
        &self,
        lease: &Lease,
        steps: &[StepRecord],
        now: Timestamp,
    ) -> impl Call<HashSet<JobId>>;
    fn record_scripts(&self, scripts: &[(JobId, u32, String)]) -> impl Call<()>;
    fn record_steps(&self, lease: &Lease, steps: &[StepRecord], now: Timestamp) -> impl Call<HashSet<JobId>>;
    fn delete_purged(&self, lease: &Lease, jobs: &[JobId]) -> impl Call<()>;
    fn put_off_purges(&self, lease: &Lease, jobs: &[(JobId, Duration)]) -> impl Call<()>;
}

/// The right to poll a cluster, and what its polls saw.
pub trait PollTurns {
    fn acquire_poll(
        &self,
        cluster: &ClusterName,
        token: Uuid,
        duration: Duration,
    ) -> impl Call<Option<PollLease>>;
    fn extend_poll(&self, lease: &PollLease, duration: Duration) -> impl Call<()>;
    fn active_jobs(&self, cluster: &ClusterName) -> impl Call<Vec<ActiveJob>>;
    fn jobs_as_asked(&self, asked: &[&ActiveJob]) -> impl Call<Vec<Job>>;
    fn record_observations(
        &self,
        lease: &PollLease,
        changed: &[ObservedChange],
        now: Timestamp,
    ) -> impl Call<u64>;
    fn record_poll(
        &self,
        lease: &PollLease,
        result: PollResult<'_>,
        interval: Duration,
        now: Timestamp,
    ) -> impl Call<()>;
    fn poll_soon(&self, cluster: &ClusterName, pace: Duration) -> impl Call<()>;
    fn next_poll_in(&self, cluster: &ClusterName) -> impl Call<Option<Duration>>;
}

/// Jobs on the cluster that nothing watches.
pub trait OrphanRecords {
    fn records_of(&self, cluster: &ClusterName, origins: &[Origin]) -> impl Call<HashMap<Origin, Record>>;
    fn record_orphans(
        &self,
        lease: &PollLease,
        orphans: &[Orphan],
        condemned: &[SlurmJobId],
        now: Timestamp,
    ) -> impl Call<()>;
}

/// Conversions of images: who waits for them, the right to take a step of one, and what came of it.
pub trait ImageConversions {
    fn want_images(&self, cluster: &ClusterName, wishes: &[ImageRequest]) -> impl Call<Vec<Conversion>>;
    fn reopen_conversions(&self, cluster: &ClusterName, conversions: &[&Conversion]) -> impl Call<()>;
    fn look_after_conversions(&self, cluster: &ClusterName, jobs: &[JobId]) -> impl Call<()>;
    fn wake_overtaken(&self, jobs: &[(JobId, &Conversion)]) -> impl Call<()>;
    fn acquire_conversions(
        &self,
        cluster: &ClusterName,
        token: Uuid,
        terms: LeaseTerms,
    ) -> impl Call<ConversionLease>;
    fn extend_conversions(&self, lease: &ConversionLease, duration: Duration) -> impl Call<()>;
    fn put_off_conversions(
        &self,
        lease: &ConversionLease,
        conversions: &[(Uuid, Option<Abandoned>)],
        again_in: Option<Duration>,
    ) -> impl Call<()>;
    fn record_conversions(
        &self,
        lease: &ConversionLease,
        cluster: &ClusterName,
        records: &[ConversionRecord],
        release: bool,
        now: Timestamp,
    ) -> impl Call<HashSet<Uuid>>;
    fn next_conversion_in(&self, cluster: &ClusterName) -> impl Call<Option<Duration>>;
    fn active_conversions(&self, cluster: &ClusterName) -> impl Call<Vec<Conversion>>;
    fn record_seen_conversions(&self, cluster: &ClusterName, conversions: &[Conversion]) -> impl Call<()>;
}

/// The turn to ask a cluster for its partitions, and what it said.
pub trait PartitionTurns {
    fn take_partitions_turn(&self, cluster: &ClusterName, patience: Duration) -> impl Call<bool>;
    fn record_partitions(
        &self,
        cluster: &ClusterName,
        answer: &PartitionsAnswer,
        interval: Duration,
        now: Timestamp,
    ) -> impl Call<()>;
    fn record_partitions_unanswered(
        &self,
        cluster: &ClusterName,
        error: &str,
        again_in: Duration,
        now: Timestamp,
    ) -> impl Call<()>;
    fn next_partitions_in(&self, cluster: &ClusterName) -> impl Call<Option<Duration>>;
    fn partitions(&self) -> impl Call<HashMap<ClusterName, KnownPartitions>>;
}

/// Which clusters the names of those mean that are kept in the database.
pub trait Incarnations {
    fn is_incarnation(&self, cluster: &ClusterName, incarnation: i64) -> impl Call<bool>;
}
