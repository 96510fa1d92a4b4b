use domain::ClusterName;
use persistence::{Incarnations, StoreError, WorkStore};

use super::{Gate, GatedStore};

impl<S: WorkStore, G: Gate> Incarnations for GatedStore<S, G> {
    async fn is_incarnation(&self, cluster: &ClusterName, incarnation: i64) -> Result<bool, StoreError> {
        self.gate.pass("is_incarnation", self.store.is_incarnation(cluster, incarnation)).await
    }
}
