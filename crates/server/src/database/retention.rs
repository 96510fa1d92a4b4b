//! Deletion of finished jobs, if `database.keep_ended_jobs` is set.

use std::time::Duration;

use metrics::counter;
use persistence::{Store, StoreError};
use tokio::time::{Instant, sleep};
use tokio_util::sync::CancellationToken;

const INTERVAL: Duration = Duration::from_mins(10);
/// Small enough that other queries do not wait long for the locks of one statement.
const BATCH: u32 = 500;

/// Any number of processes may run this at the same time.
pub(crate) struct Retention {
    pub(crate) store: Store,
    /// How long a finished job is kept.
    pub(crate) keep: Duration,
}

impl Retention {
    /// Deletes the jobs that are due, repeatedly, until `stop`.
    pub(crate) async fn run(&self, stop: CancellationToken) {
        loop {
            match stop.run_until_cancelled(self.delete()).await {
                None => return,
                Some(Ok(0)) => {}
                Some(Ok(jobs)) => {
                    let after = humantime_serde::re::humantime::format_duration(self.keep);
                    tracing::info!(jobs, "deleted jobs that finished more than {after} ago");
                }
                Some(Err(error)) => {
                    tracing::warn!(%error, "cannot delete old finished jobs; retrying later");
                }
            }
            if stop.run_until_cancelled(sleep(INTERVAL)).await.is_none() {
                return;
            }
        }
    }

    /// Deletes all jobs that are due, in small batches.
    async fn delete(&self) -> Result<u64, StoreError> {
        let mut all = 0;
        loop {
            let began = Instant::now();
            let jobs = self.store.delete_finished(self.keep, BATCH).await?;
            counter!("tao_slurm_jobs_deleted_total").increment(jobs);
            all += jobs;
            if jobs == 0 {
                self.store.delete_empty_pipelines().await?;
                self.store.delete_old_allocations().await?;
                return Ok(all);
            }
            // At least half of the time is left to other users of the database.
            sleep(began.elapsed()).await;
        }
    }
}
