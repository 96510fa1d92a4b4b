//! The turn to refresh the partitions of a cluster, and the answer.

use std::{collections::HashMap, time::Duration};

use domain::{ClusterName, Timestamp};
use persistence::{KnownPartitions, PartitionTurns, StoreError};
use remote::PartitionsAnswer;

use super::{MemoryStore, after, until};

#[derive(Debug)]
pub(super) struct PartitionsRow {
    due_at: Timestamp,
    known: KnownPartitions,
}

impl MemoryStore {
    fn update_partitions(
        &self,
        cluster: &ClusterName,
        time: Duration,
        update: impl FnOnce(&mut KnownPartitions),
    ) {
        let now = self.now();
        if let Some(row) = self.tables().partitions.get_mut(cluster) {
            row.due_at = after(now, time);
            update(&mut row.known);
        }
    }
}

impl PartitionTurns for MemoryStore {
    async fn take_partitions_turn(
        &self,
        cluster: &ClusterName,
        patience: Duration,
    ) -> Result<bool, StoreError> {
        let now = self.now();
        let mut tables = self.tables();
        if tables.partitions.get(cluster).is_some_and(|row| row.due_at > now) {
            return Ok(false);
        }
        let unknown = || KnownPartitions {
            partitions: Vec::new(),
            all_must_allow: false,
            max_array_size: None,
            fetched_at: None,
            interval: Duration::from_mins(5),
            error: None,
        };
        let row = tables.partitions.entry(cluster.clone());
        let row = row.or_insert_with(|| PartitionsRow { due_at: now, known: unknown() });
        row.due_at = after(now, patience);
        Ok(true)
    }

    async fn record_partitions(
        &self,
        cluster: &ClusterName,
        answer: &PartitionsAnswer,
        interval: Duration,
        now: Timestamp,
    ) -> Result<(), StoreError> {
        self.update_partitions(cluster, interval, |known| {
            known.partitions.clone_from(&answer.partitions);
            (known.all_must_allow, known.max_array_size) = (answer.all_must_allow, answer.max_array_size);
            (known.fetched_at, known.interval, known.error) = (Some(now), interval, None);
        });
        Ok(())
    }

    async fn record_partitions_unanswered(
        &self,
        cluster: &ClusterName,
        error: &str,
        retry_in: Duration,
        now: Timestamp,
    ) -> Result<(), StoreError> {
        self.update_partitions(cluster, retry_in, |known| known.error = Some((error.to_owned(), now)));
        Ok(())
    }

    async fn next_partitions_in(&self, cluster: &ClusterName) -> Result<Option<Duration>, StoreError> {
        let now = self.now();
        Ok(self.tables().partitions.get(cluster).map(|row| until(row.due_at, now)))
    }

    async fn partitions(&self) -> Result<HashMap<ClusterName, KnownPartitions>, StoreError> {
        let tables = self.tables();
        Ok(tables.partitions.iter().map(|(cluster, row)| (cluster.clone(), row.known.clone())).collect())
    }
}
