//! What each cluster last reported about its partitions.

use std::{collections::HashMap, time::Duration};

use chrono::TimeDelta;
use domain::{ClusterName, Timestamp, limits::ReportedLimits};
use remote::PartitionsAnswer;
use slurm::PartitionInfo;

use crate::{
    error::Result,
    store::{Call, Store},
    values::{duration, millis, to_json},
};

/// The stored partitions of one cluster.
#[derive(Debug, Clone)]
pub struct KnownPartitions {
    pub partitions: Vec<PartitionInfo>,
    /// Whether Slurm refuses a job that is beyond the limits of only one of its partitions.
    pub all_must_allow: bool,
    /// Slurm's `MaxArraySize`, if the cluster has reported it.
    pub max_array_size: Option<u32>,
    /// When the cluster reported them; `None` when it has never answered.
    pub fetched_at: Option<Timestamp>,
    /// The refresh interval.
    pub interval: Duration,
    /// Why the last refresh failed, and when; `None` when it succeeded.
    pub error: Option<(String, Timestamp)>,
}

impl KnownPartitions {
    /// Whether the last answer is older than three refresh intervals.
    pub fn is_stale(&self, now: Timestamp) -> bool {
        let patience = TimeDelta::from_std(self.interval.saturating_mul(3)).unwrap_or(TimeDelta::MAX);
        self.fetched_at.is_none_or(|at| now - at > patience)
    }

    /// The limits of the partitions; `None` when the cluster has never answered.
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

/// The turn to refresh the partitions of a cluster, and the answer.
pub trait PartitionTurns {
    /// Takes the turn if a refresh is due. Another process takes it after `patience` if this one dies.
    fn take_partitions_turn(&self, cluster: &ClusterName, patience: Duration) -> impl Call<bool>;

    /// Stores an answer. The next refresh is due after `interval`.
    fn record_partitions(
        &self,
        cluster: &ClusterName,
        answer: &PartitionsAnswer,
        interval: Duration,
        now: Timestamp,
    ) -> impl Call<()>;

    /// Stores why a cluster did not answer, and keeps its last answer. The next refresh is due after `retry_in`.
    fn record_partitions_unanswered(
        &self,
        cluster: &ClusterName,
        error: &str,
        retry_in: Duration,
        now: Timestamp,
    ) -> impl Call<()>;

    /// The time until the next refresh of a cluster; `None` before its first.
    fn next_partitions_in(&self, cluster: &ClusterName) -> impl Call<Option<Duration>>;

    /// The partitions of each cluster. An unreadable row is logged and left out: the cluster reports it again.
    fn partitions(&self) -> impl Call<HashMap<ClusterName, KnownPartitions>>;
}

impl PartitionTurns for Store {
    async fn take_partitions_turn(&self, cluster: &ClusterName, patience: Duration) -> Result<bool> {
        let statement = sqlx::query!(
            "-- clusters::partitions::take_partitions_turn
             insert into cluster_partitions as p (cluster, due_at)
             values ($1, now() + $2 * interval '1 millisecond')
             on conflict (cluster) do update set due_at = excluded.due_at where p.due_at <= now()",
            cluster.as_str(),
            millis(patience),
        );
        let taken = self.execute(statement).await?;
        Ok(taken > 0)
    }

    async fn record_partitions(
        &self,
        cluster: &ClusterName,
        answer: &PartitionsAnswer,
        interval: Duration,
        now: Timestamp,
    ) -> Result<()> {
        let partitions = to_json("a list of partitions", &answer.partitions)?;
        self.run(sqlx::query!(
            "-- clusters::partitions::record_partitions
             update cluster_partitions
             set partitions = $2, all_must_allow = $3, fetched_at = $4, error = null, error_at = null,
                 interval_ms = $5, due_at = now() + $6 * interval '1 millisecond', max_array_size = $7
             where cluster = $1",
            cluster.as_str(),
            partitions,
            answer.all_must_allow,
            now,
            i64::try_from(interval.as_millis()).unwrap_or(i64::MAX),
            millis(interval),
            answer.max_array_size.and_then(|size| i32::try_from(size).ok()),
        ))
        .await
    }

    async fn record_partitions_unanswered(
        &self,
        cluster: &ClusterName,
        error: &str,
        retry_in: Duration,
        now: Timestamp,
    ) -> Result<()> {
        self.run(sqlx::query!(
            "-- clusters::partitions::record_partitions_unanswered
             update cluster_partitions
             set error = $2, error_at = $3, due_at = now() + $4 * interval '1 millisecond'
             where cluster = $1",
            cluster.as_str(),
            error.replace('\0', " "),
            now,
            millis(retry_in),
        ))
        .await
    }

    async fn next_partitions_in(&self, cluster: &ClusterName) -> Result<Option<Duration>> {
        let millis = sqlx::query_scalar!(
            r#"-- clusters::partitions::next_partitions_in
               select (extract(epoch from due_at - now()) * 1000)::bigint as "millis!" from cluster_partitions where cluster = $1"#,
            cluster.as_str(),
        );
        Ok(millis.fetch_optional(&self.pool).await?.map(duration))
    }

    async fn partitions(&self) -> Result<HashMap<ClusterName, KnownPartitions>> {
        let rows = sqlx::query!(
            "-- clusters::partitions::partitions
             select cluster, partitions, all_must_allow, max_array_size, fetched_at, interval_ms, error, error_at
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
            let stored = KnownPartitions {
                partitions,
                all_must_allow: row.all_must_allow,
                max_array_size: row.max_array_size.and_then(|size| u32::try_from(size).ok()),
                fetched_at: row.fetched_at,
                interval: duration(row.interval_ms),
                error: row.error.zip(row.error_at),
            };
            known.insert(cluster, stored);
        }
        Ok(known)
    }
}

#[cfg(test)]
mod tests;
