//! What each cluster last said about its partitions.

use std::{collections::HashMap, time::Duration};

use chrono::TimeDelta;
use domain::{ClusterName, Timestamp, limits::ReportedLimits};
use remote::PartitionsAnswer;
use slurm::PartitionInfo;

use crate::{error::StoreError, jobs::leases::millis, store::Store};

/// What is remembered of one cluster's partitions.
#[derive(Debug, Clone)]
pub struct KnownPartitions {
    pub partitions: Vec<PartitionInfo>,
    /// Whether Slurm refuses a job that is beyond the limits of only one of its partitions.
    pub all_must_allow: bool,
    /// When the cluster said so; none when it has never answered.
    pub fetched_at: Option<Timestamp>,
    /// How often it is asked.
    pub interval: Duration,
    /// Why the last question was not answered, and when that was; none when it was.
    pub error: Option<(String, Timestamp)>,
}

impl KnownPartitions {
    /// Whether so many questions in a row have gone unanswered that things may have changed: three of them.
    pub fn is_stale(&self, now: Timestamp) -> bool {
        let patience = TimeDelta::from_std(self.interval.saturating_mul(3)).unwrap_or(TimeDelta::MAX);
        self.fetched_at.is_none_or(|at| now - at > patience)
    }

    /// The limits in it; none when the cluster has never answered.
    pub fn limits(&self, now: Timestamp) -> Option<ReportedLimits> {
        let at = self.fetched_at?;
        Some(ReportedLimits {
            partitions: self.partitions.clone(),
            all_must_allow: self.all_must_allow,
            at,
            fresh: !self.is_stale(now),
        })
    }
}

impl Store {
    /// Takes the turn to ask a cluster for its partitions, if it is time for that and nobody else has just taken it.
    /// Whoever dies with the turn is made good for after `patience`.
    pub async fn take_partitions_turn(
        &self,
        cluster: &ClusterName,
        patience: Duration,
    ) -> Result<bool, StoreError> {
        let taken = sqlx::query!(
            "-- partitions::take_turn
             insert into cluster_partitions as p (cluster, due_at)
             values ($1, now() + $2 * interval '1 millisecond')
             on conflict (cluster) do update set due_at = excluded.due_at where p.due_at <= now()",
            cluster.as_str(),
            millis(patience),
        )
        .execute(&self.pool)
        .await?
        .rows_affected();
        Ok(taken > 0)
    }

    /// Stores what a cluster has said. The next turn is due after `interval`.
    pub async fn record_partitions(
        &self,
        cluster: &ClusterName,
        answer: &PartitionsAnswer,
        interval: Duration,
        now: Timestamp,
    ) -> Result<(), StoreError> {
        let partitions = serde_json::to_value(&answer.partitions)
            .map_err(|_| StoreError::Unstorable("partitions are no JSON"))?;
        sqlx::query!(
            "-- partitions::record
             update cluster_partitions
             set partitions = $2, all_must_allow = $3, fetched_at = $4, error = null, error_at = null,
                 interval_ms = $5, due_at = now() + $6 * interval '1 millisecond'
             where cluster = $1",
            cluster.as_str(),
            partitions,
            answer.all_must_allow,
            now,
            i64::try_from(interval.as_millis()).unwrap_or(i64::MAX),
            millis(interval),
        )
        .execute(&self.pool)
        .await?;
        Ok(())
    }

    /// Stores why a cluster did not answer; what it said before stays. The next turn is due after `again_in`.
    pub async fn record_partitions_unanswered(
        &self,
        cluster: &ClusterName,
        error: &str,
        again_in: Duration,
        now: Timestamp,
    ) -> Result<(), StoreError> {
        sqlx::query!(
            "-- partitions::record_unanswered
             update cluster_partitions
             set error = $2, error_at = $3, due_at = now() + $4 * interval '1 millisecond'
             where cluster = $1",
            cluster.as_str(),
            error.replace('\0', " "),
            now,
            millis(again_in),
        )
        .execute(&self.pool)
        .await?;
        Ok(())
    }

    /// How long until a cluster is asked again; none when it was never asked.
    pub async fn next_partitions_in(&self, cluster: &ClusterName) -> Result<Option<Duration>, StoreError> {
        let millis = sqlx::query_scalar!(
            r#"-- partitions::next_in
               select (extract(epoch from due_at - now()) * 1000)::bigint from cluster_partitions where cluster = $1"#,
            cluster.as_str(),
        )
        .fetch_optional(&self.pool)
        .await?;
        Ok(millis.flatten().map(|millis| Duration::from_millis(u64::try_from(millis).unwrap_or(0))))
    }

    /// What each cluster has said. One whose row cannot be read is left out, and logged: what is in it is only a copy.
    pub async fn partitions(&self) -> Result<HashMap<ClusterName, KnownPartitions>, StoreError> {
        let rows = sqlx::query!(
            "-- partitions::all
             select cluster, partitions, all_must_allow, fetched_at, interval_ms, error, error_at
             from cluster_partitions"
        )
        .fetch_all(&self.pool)
        .await?;
        let mut known = HashMap::new();
        for row in rows {
            let Ok(cluster) = row.cluster.parse() else { continue };
            let partitions = match serde_json::from_value(row.partitions) {
                Ok(partitions) => partitions,
                Err(error) => {
                    tracing::warn!(cluster.name = row.cluster, %error, "stored partitions cannot be read");
                    continue;
                }
            };
            let interval = Duration::from_millis(u64::try_from(row.interval_ms).unwrap_or(0));
            let (all_must_allow, fetched_at) = (row.all_must_allow, row.fetched_at);
            let error = row.error.zip(row.error_at);
            known
                .insert(cluster, KnownPartitions { partitions, all_must_allow, fetched_at, interval, error });
        }
        Ok(known)
    }
}

#[cfg(test)]
mod tests;
