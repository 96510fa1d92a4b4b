//! Wake-ups: a worker learns at once that a job is due, and whoever watches jobs that one has changed. A lost one costs
//! nothing but time, since both also look by themselves.

use std::str::FromStr;

use domain::{ClusterName, JobId};
use sqlx::{PgConnection, postgres::PgListener};

use crate::{error::StoreError, jobs::leases::Lane, store::Store};

const DUE: &str = "tao_slurm_due";
/// Spoken on by a trigger.
const JOBS: &str = "tao_slurm_jobs";

/// What says that something of a cluster is due: in one lane, so that a job that comes in costs no look of the others, or in any.
pub(crate) fn due(cluster: &ClusterName, lane: Option<Lane>) -> (&'static str, String) {
    (DUE, lane.map_or_else(|| cluster.to_string(), |lane| format!("{cluster} {lane}")))
}

/// Wakes whoever listens, once the transaction commits.
pub(crate) async fn wake(
    connection: &mut PgConnection,
    cluster: &ClusterName,
    lane: Option<Lane>,
) -> Result<(), StoreError> {
    let (channel, payload) = due(cluster, lane);
    sqlx::query!(
        "-- listen::wake
         select pg_notify($1, $2)",
        channel,
        payload,
    )
    .fetch_one(connection)
    .await?;
    Ok(())
}

/// Something of a cluster is due.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DueNotice {
    pub cluster: ClusterName,
    /// None: it may be anything.
    pub lane: Option<Lane>,
}

impl FromStr for DueNotice {
    type Err = <ClusterName as FromStr>::Err;

    fn from_str(payload: &str) -> Result<Self, Self::Err> {
        let (cluster, lane) = payload.split_once(' ').unwrap_or((payload, ""));
        // A lane that a later version knows is any of them.
        Ok(Self { cluster: cluster.parse()?, lane: lane.parse().ok() })
    }
}

/// Hears of clusters that have something due.
#[derive(Debug)]
pub struct DueListener(PgListener);

impl Store {
    pub async fn listen_due(&self) -> Result<DueListener, StoreError> {
        let mut listener = PgListener::connect_with(&self.pool).await?;
        listener.listen(DUE).await?;
        Ok(DueListener(listener))
    }
}

impl DueListener {
    /// Waits for the next wake-up and says what it is for; none when the connection was lost and made again, which may have
    /// swallowed some.
    pub async fn next(&mut self) -> Result<Option<DueNotice>, StoreError> {
        Ok(self.0.try_recv().await?.and_then(|notice| notice.payload().parse().ok()))
    }
}

/// Hears of jobs that were added, have changed or were deleted.
#[derive(Debug)]
pub struct JobListener(PgListener);

/// What a [`JobListener`] hears.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum JobNotice {
    Changed(JobId),
    /// The connection was lost and made again: any job may have changed.
    Missed,
}

impl Store {
    pub async fn listen_jobs(&self) -> Result<JobListener, StoreError> {
        let mut listener = PgListener::connect_with(&self.pool).await?;
        listener.listen(JOBS).await?;
        Ok(JobListener(listener))
    }
}

impl JobListener {
    pub async fn next(&mut self) -> Result<JobNotice, StoreError> {
        let notice = self.0.try_recv().await?;
        Ok(notice
            .and_then(|notice| notice.payload().parse().ok())
            .map_or(JobNotice::Missed, JobNotice::Changed))
    }
}
