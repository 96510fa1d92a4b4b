//! The known clusters: those of the configuration file, and those stored in the database, which come and go.

use std::{
    collections::{BTreeMap, HashMap},
    sync::{Arc, PoisonError, RwLock},
};

use domain::{Cluster, ClusterName, Violation};
use serde_json::Value;

/// All clusters that this process knows. Clones share the set.
#[derive(Debug, Clone, Default)]
pub struct KnownClusters(Arc<RwLock<Arc<ClusterSet>>>);

/// The clusters at one moment.
#[derive(Debug, Default)]
pub struct ClusterSet {
    /// The clusters of the file in its order, then the stored ones, oldest first.
    clusters: Vec<Cluster>,
    kept: HashMap<ClusterName, KeptFacts>,
    unusable: BTreeMap<ClusterName, UnusableCluster>,
}

/// The facts about a stored cluster beside its configuration.
#[derive(Debug, Clone)]
pub struct KeptFacts {
    pub revision: i64,
    pub incarnation: i64,
    /// As the caller sent them.
    pub settings: Value,
    /// Why this process cannot use the cluster now.
    pub unavailable: Option<String>,
}

/// A stored cluster with invalid settings. It is not used until they are corrected.
#[derive(Debug, Clone)]
pub struct UnusableCluster {
    pub revision: i64,
    pub settings: Value,
    /// With JSON pointers into the settings.
    pub faults: Vec<Violation>,
}

impl KnownClusters {
    /// The current set. Two calls may return different sets.
    pub fn now(&self) -> Arc<ClusterSet> {
        Arc::clone(&self.0.read().unwrap_or_else(PoisonError::into_inner))
    }

    pub fn set(&self, set: ClusterSet) {
        *self.0.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(set);
    }
}

impl ClusterSet {
    /// Only the clusters of the configuration file.
    pub fn of_file(clusters: Vec<Cluster>) -> Self {
        Self { clusters, ..Self::default() }
    }

    pub fn add(&mut self, cluster: Cluster, facts: KeptFacts) {
        self.kept.insert(cluster.name.clone(), facts);
        self.clusters.push(cluster);
    }

    pub fn add_unusable(&mut self, name: ClusterName, unusable: UnusableCluster) {
        self.unusable.insert(name, unusable);
    }

    /// The first is the default.
    pub fn all(&self) -> &[Cluster] {
        &self.clusters
    }

    pub fn get(&self, name: &ClusterName) -> Option<&Cluster> {
        self.clusters.iter().find(|cluster| cluster.name == *name)
    }

    /// None for a cluster of the configuration file, and for one that does not exist.
    pub fn kept(&self, name: &ClusterName) -> Option<&KeptFacts> {
        self.kept.get(name)
    }

    pub fn is_in_file(&self, name: &ClusterName) -> bool {
        self.get(name).is_some() && !self.kept.contains_key(name)
    }

    pub fn unusable(&self) -> &BTreeMap<ClusterName, UnusableCluster> {
        &self.unusable
    }

    /// The incarnation of a stored cluster; none for one of the configuration file.
    pub(crate) fn incarnation(&self, name: &ClusterName) -> Option<i64> {
        self.kept(name).map(|facts| facts.incarnation)
    }
}

impl UnusableCluster {
    /// All faults in one sentence.
    pub fn reason(&self) -> String {
        let faults = self.faults.iter().map(|fault| format!("{}: {}", fault.pointer, fault.detail));
        faults.collect::<Vec<_>>().join("; ")
    }
}
