//! Wake-ups: a worker learns at once that a job is due. A lost one costs nothing but time, since workers also
//! look by themselves.

use domain::ClusterName;
use sqlx::{PgConnection, postgres::PgListener};

use crate::{error::StoreError, store::Store};

const DUE: &str = "tao_slurm_due";

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
