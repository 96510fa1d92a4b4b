//! Notifications: they wake workers when a job is due, and readers when a job changes. A lost one costs only time: both also
//! check at intervals.

use std::str::FromStr;

use domain::{ClusterName, JobId};
use sqlx::{PgConnection, postgres::PgListener};

use crate::{
    error::Result,
    jobs::lane::Lane,
    store::{Call, Store},
};

const DUE: &str = "tao_slurm_due";
/// A trigger sends these.
const JOBS: &str = "tao_slurm_jobs";

/// The notification that a cluster has due work: in one lane, so that the other lane does not look, or in both.
pub(crate) fn due(cluster: &ClusterName, lane: Option<Lane>) -> (&'static str, String) {
    (DUE, lane.map_or_else(|| cluster.to_string(), |lane| format!("{cluster} {lane}")))
}

/// Wakes all listeners once the transaction commits.
pub(crate) async fn wake(
    connection: &mut PgConnection,
    cluster: &ClusterName,
    lane: Option<Lane>,
) -> Result<()> {
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

/// A listener on channels of the database; it reconnects by itself.
pub(crate) async fn listen(store: &Store, channel: &str) -> Result<PgListener> {
    let mut listener = PgListener::connect_with(&store.pool).await?;
    listener.listen(channel).await?;
    Ok(listener)
}

/// A cluster has due work.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DueNotice {
    pub cluster: ClusterName,
    /// `None`: it may be in any lane.
    pub lane: Option<Lane>,
}

impl FromStr for DueNotice {
    type Err = <ClusterName as FromStr>::Err;

    fn from_str(payload: &str) -> Result<Self, Self::Err> {
        let (cluster, lane) = payload.split_once(' ').unwrap_or((payload, ""));
        // A lane of a later version stands for any lane.
        Ok(Self { cluster: cluster.parse()?, lane: lane.parse().ok() })
    }
}

/// Reports clusters that have due work.
pub trait DueNotices: Send {
    /// Waits for the next notice. `None` when the connection was lost and restored: notices may have been lost, too.
    fn next(&mut self) -> impl Call<Option<DueNotice>>;
}

#[derive(Debug)]
pub struct DueListener(PgListener);

impl DueListener {
    pub(crate) async fn start(store: &Store) -> Result<Self> {
        Ok(Self(listen(store, DUE).await?))
    }
}

impl DueNotices for DueListener {
    async fn next(&mut self) -> Result<Option<DueNotice>> {
        Ok(self.0.try_recv().await?.and_then(|notice| notice.payload().parse().ok()))
    }
}

/// Reports jobs that were added, changed or deleted.
#[derive(Debug)]
pub struct JobListener(PgListener);

/// What a [`JobListener`] reports.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum JobNotice {
    Changed(JobId),
    /// The connection was lost and restored: any job may have changed.
    Missed,
}

impl Store {
    pub async fn listen_jobs(&self) -> Result<JobListener> {
        Ok(JobListener(listen(self, JOBS).await?))
    }
}

impl JobListener {
    pub async fn next(&mut self) -> Result<JobNotice> {
        let notice = self.0.try_recv().await?;
        Ok(notice
            .and_then(|notice| notice.payload().parse().ok())
            .map_or(JobNotice::Missed, JobNotice::Changed))
    }
}
