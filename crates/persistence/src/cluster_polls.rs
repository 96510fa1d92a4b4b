//! How the polls of each cluster fare, for those who look after it.

use std::{collections::HashMap, time::Duration};

use domain::{ClusterName, Timestamp};

use crate::{error::StoreError, store::Store};

/// The polls of one cluster.
#[derive(Debug, Clone)]
pub struct PollState {
    /// The last one that was answered properly.
    pub polled_at: Option<Timestamp>,
    /// The pace at that time.
    pub interval: Duration,
    /// How many were not answered since.
    pub failures: u32,
    /// Why the last one was not.
    pub error: Option<String>,
    /// When the next one is due, by the database's clock.
    pub due_at: Timestamp,
    /// Jobs that polls ask about.
    pub active_jobs: u64,
}

impl Store {
    /// The polls of each cluster that was ever polled.
    pub async fn poll_states(&self) -> Result<HashMap<ClusterName, PollState>, StoreError> {
        let rows = sqlx::query!(
            r#"-- cluster_polls::states
               select p.cluster, p.polled_at, p.interval_ms, p.failures, p.error, p.due_at,
                      (select count(*) from jobs j
                       where j.cluster = p.cluster and j.phase in ('in_queue', 'running', 'suspended')) as "active_jobs!"
               from cluster_polls p"#
        )
        .fetch_all(&self.pool)
        .await?;
        let state = |polled_at, interval_ms: i64, failures: i32, error, due_at, active: i64| PollState {
            polled_at,
            interval: Duration::from_millis(u64::try_from(interval_ms).unwrap_or(0)),
            failures: u32::try_from(failures).unwrap_or(0),
            error,
            due_at,
            active_jobs: u64::try_from(active).unwrap_or(0),
        };
        Ok(rows
            .into_iter()
            .filter_map(|row| {
                let state = state(
                    row.polled_at,
                    row.interval_ms,
                    row.failures,
                    row.error,
                    row.due_at,
                    row.active_jobs,
                );
                Some((row.cluster.parse().ok()?, state))
            })
            .collect())
    }
}

#[cfg(test)]
mod tests {
    use chrono::DateTime;
    use sqlx::PgPool;
    use uuid::Uuid;

    use super::*;
    use crate::{PollResult, Sealer};

    #[sqlx::test(migrator = "crate::MIGRATOR")]
    async fn failures_are_counted_and_explained(pool: PgPool) {
        let store = Store::from_pool(pool, Sealer::from_key([7; 32]));
        let dgx: ClusterName = "dgx".parse().unwrap();
        for token in 1..=2 {
            let lease =
                store.acquire_poll(&dgx, Uuid::from_u128(token), Duration::from_mins(1)).await.unwrap();
            let failed = PollResult::Unanswered { error: "no route" };
            store.record_poll(&lease.unwrap(), failed, Duration::ZERO, DateTime::UNIX_EPOCH).await.unwrap();
        }
        let states = store.poll_states().await.unwrap();
        let state = &states[&dgx];
        assert_eq!((state.failures, state.error.as_deref()), (2, Some("no route")));
        assert_eq!((state.polled_at, state.active_jobs), (None, 0));
    }
}
