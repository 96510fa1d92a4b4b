//! The turn to ask a cluster for its partitions, and what it said.

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
    fn told_partitions(
        &self,
        cluster: &ClusterName,
        time: Duration,
        tell: impl FnOnce(&mut KnownPartitions),
    ) {
        let now = self.now();
        if let Some(row) = self.tables().partitions.get_mut(cluster) {
            row.due_at = after(now, time);
            tell(&mut row.known);
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
        let nothing = || KnownPartitions {
            partitions: Vec::new(),
            all_must_allow: false,
            fetched_at: None,
            interval: Duration::from_mins(5),
            error: None,
        };
        let row = tables.partitions.entry(cluster.clone());
        let row = row.or_insert_with(|| PartitionsRow { due_at: now, known: nothing() });
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
        self.told_partitions(cluster, interval, |known| {
            known.partitions.clone_from(&answer.partitions);
            known.all_must_allow = answer.all_must_allow;
            (known.fetched_at, known.interval, known.error) = (Some(now), interval, None);
        });
        Ok(())
    }

    async fn record_partitions_unanswered(
        &self,
        cluster: &ClusterName,
        error: &str,
        again_in: Duration,
        now: Timestamp,
    ) -> Result<(), StoreError> {
        self.told_partitions(cluster, again_in, |known| known.error = Some((error.to_owned(), now)));
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
