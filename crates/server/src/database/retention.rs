//! Jobs that ended long ago leave the database, if somebody has said how long they are to stay.

use std::time::Duration;

use metrics::counter;
use persistence::{Store, StoreError};
use tokio::time::{Instant, sleep};
use tokio_util::sync::CancellationToken;

const LOOK_EVERY: Duration = Duration::from_mins(10);
/// Few enough that nobody waits long for what one statement holds.
const AT_A_TIME: u32 = 500;

/// Any number of processes may do this at once.
pub(crate) struct Retention {
    pub(crate) store: Store,
    /// How long a job stays after its end.
    pub(crate) keep: Duration,
}

impl Retention {
    /// Looks for them now and then until `stop`.
    pub(crate) async fn run(&self, stop: CancellationToken) {
        loop {
            match stop.run_until_cancelled(self.forget()).await {
                None => return,
                Some(Ok(0)) => {}
                Some(Ok(jobs)) => {
                    let after = humantime_serde::re::humantime::format_duration(self.keep);
                    tracing::info!(jobs, "forgot jobs that ended more than {after} ago");
                }
                Some(Err(error)) => {
                    tracing::warn!(%error, "jobs that ended long ago cannot be forgotten; trying again later");
                }
            }
            if stop.run_until_cancelled(sleep(LOOK_EVERY)).await.is_none() {
                return;
            }
        }
    }

    /// All that are due, in small portions.
    async fn forget(&self) -> Result<u64, StoreError> {
        let mut all = 0;
        loop {
            let began = Instant::now();
            let jobs = self.store.delete_finished(self.keep, AT_A_TIME).await?;
            counter!("jobs_forgotten_total").increment(jobs);
            all += jobs;
            if jobs == 0 {
                return Ok(all);
            }
            // At least half of the time is for those who have work for the database.
            sleep(began.elapsed()).await;
        }
    }
}
