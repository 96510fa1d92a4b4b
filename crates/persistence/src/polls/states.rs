//! How the polls of each cluster fare, for those who look after it.

use std::{collections::HashMap, time::Duration};

use domain::{ClusterName, Orphan, Timestamp};

use crate::{error::StoreError, polls::orphans, store::Store};

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
    /// Why: the cluster accepts no key that we have.
    pub auth_required: bool,
    /// When the next one is due, by the database's clock.
    pub due_at: Timestamp,
    /// Jobs that polls ask about.
    pub active_jobs: u64,
    /// Those of them that neither the queue nor accounting knows at the moment.
    pub missing_jobs: u64,
    /// Jobs on the cluster with names of ours that nothing watches.
    pub orphans: Vec<Orphan>,
}

impl Store {
    /// The polls of each cluster that was ever polled.
    pub async fn poll_states(&self) -> Result<HashMap<ClusterName, PollState>, StoreError> {
        let rows = sqlx::query!(
            r#"-- cluster_polls::states
               select p.cluster, p.polled_at, p.interval_ms, p.failures, p.error, p.auth_required, p.due_at,
                      (select count(*) from jobs j
                       where j.cluster = p.cluster and j.phase in ('in_queue', 'running', 'suspended')) as "active_jobs!",
                      (select count(*) from jobs j
                       where j.cluster = p.cluster and j.phase in ('in_queue', 'running', 'suspended')
                         and j.missing_since is not null) as "missing_jobs!", p.orphans
               from cluster_polls p"#
        )
        .fetch_all(&self.pool)
        .await?;
        Ok(rows
            .into_iter()
            .filter_map(|row| {
                let cluster: ClusterName = row.cluster.parse().ok()?;
                let state = PollState {
                    polled_at: row.polled_at,
                    interval: Duration::from_millis(u64::try_from(row.interval_ms).unwrap_or(0)),
                    failures: u32::try_from(row.failures).unwrap_or(0),
                    error: row.error,
                    auth_required: row.auth_required,
                    due_at: row.due_at,
                    active_jobs: u64::try_from(row.active_jobs).unwrap_or(0),
                    missing_jobs: u64::try_from(row.missing_jobs).unwrap_or(0),
                    orphans: orphans::read(&cluster, row.orphans),
                };
                Some((cluster, state))
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
            let failed = PollResult::Unanswered { error: "no route", auth_required: true };
            store.record_poll(&lease.unwrap(), failed, Duration::ZERO, DateTime::UNIX_EPOCH).await.unwrap();
        }
        let states = store.poll_states().await.unwrap();
        let state = &states[&dgx];
        assert_eq!(
            (state.failures, state.error.as_deref(), state.auth_required),
            (2, Some("no route"), true)
        );
        assert_eq!((state.polled_at, state.active_jobs), (None, 0));
    }
}
