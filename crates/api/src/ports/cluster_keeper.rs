//! Who checks the settings of clusters, through a trait, because this crate knows neither SSH nor the directory of keys.

use std::pin::Pin;

use domain::{Cluster, ClusterIdentity, ClusterName, Violation};
use serde_json::Value;

/// Knows what makes a cluster, and takes the kept ones from the database.
pub trait ClusterKeeper: Send + Sync + 'static {
    /// The cluster that the settings make, by the rules of the configuration file; or all that is wrong with them.
    fn check(&self, name: &ClusterName, settings: &Value) -> Result<CheckedCluster, Vec<Violation>>;

    /// Takes in at once what has changed in the database. Other processes do it by themselves.
    fn refresh(&self) -> Pin<Box<dyn Future<Output = ()> + Send + '_>>;
}

/// A cluster that could be worked with.
#[derive(Debug, Clone)]
pub struct CheckedCluster {
    pub cluster: Cluster,
    pub identity: ClusterIdentity,
}
