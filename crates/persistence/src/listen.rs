//! Wake-ups: a worker learns at once that a job is due, and whoever watches jobs that one has changed. A lost one costs
//! nothing but time, since both also look by themselves.

use domain::{ClusterName, JobId};
use sqlx::{PgConnection, postgres::PgListener};

use crate::{error::StoreError, store::Store};

const DUE: &str = "tao_slurm_due";
/// Spoken on by a trigger.
const JOBS: &str = "tao_slurm_jobs";

/// Wakes whoever listens, once the transaction commits.
pub(crate) async fn wake(connection: &mut PgConnection, cluster: &ClusterName) -> Result<(), StoreError> {
    sqlx::query!(
        "-- listen::wake
         select pg_notify($1, $2)",
        DUE,
        cluster.as_str()
    )
    .fetch_one(connection)
    .await?;
    Ok(())
}

/// Hears of clusters that have a job due.
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
    /// Waits for the next wake-up and says which cluster it is for; none when the connection was lost and made
    /// again, which may have swallowed some.
    pub async fn next(&mut self) -> Result<Option<ClusterName>, StoreError> {
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
