//! Stored clusters: only those that a test names.

use domain::ClusterName;
use persistence::{Incarnations, StoreError};

use super::MemoryStore;

impl MemoryStore {
    /// Lets the name mean the cluster with this incarnation, or no cluster.
    pub fn set_incarnation(&self, cluster: &ClusterName, incarnation: Option<i64>) {
        let mut tables = self.tables();
        match incarnation {
            Some(incarnation) => tables.incarnations.insert(cluster.clone(), incarnation),
            None => tables.incarnations.remove(cluster),
        };
    }
}

impl Incarnations for MemoryStore {
    async fn is_incarnation(&self, cluster: &ClusterName, incarnation: i64) -> Result<bool, StoreError> {
        Ok(self.tables().incarnations.get(cluster) == Some(&incarnation))
    }
}
