//! The port to a cluster's settings: this crate knows neither SSH nor the key directory.

use std::pin::Pin;

use domain::{Cluster, ClusterIdentity, ClusterName, Violation};
use serde_json::Value;

/// Checks settings, and loads the stored clusters.
pub trait ClusterKeeper: Send + Sync + 'static {
    /// The cluster with these settings, by the rules of the configuration file, or all faults.
    fn check(&self, name: &ClusterName, settings: &Value) -> Result<CheckedCluster, Vec<Violation>>;

    /// Loads changes from the database now. Other processes notice them by themselves.
    fn refresh(&self) -> Pin<Box<dyn Future<Output = ()> + Send + '_>>;
}

/// A cluster with valid settings.
#[derive(Debug, Clone)]
pub struct CheckedCluster {
    pub cluster: Cluster,
    pub identity: ClusterIdentity,
}
