//! The clusters there are: those of the configuration file, and those kept in the database, which come and go.

use std::{
    collections::{BTreeMap, HashMap},
    fmt,
    sync::{Arc, PoisonError, RwLock},
};

use domain::{Cluster, ClusterName, Violation};
use serde_json::Value;

/// All clusters, as this process knows them now. Clones share them.
#[derive(Clone, Default)]
pub struct KnownClusters(Arc<RwLock<Arc<ClusterSet>>>);

/// The clusters at one moment.
#[derive(Debug, Default)]
pub struct ClusterSet {
    /// Those of the file in its order, then those that are kept, the oldest first.
    clusters: Vec<Cluster>,
    kept: HashMap<ClusterName, KeptFacts>,
    unusable: BTreeMap<ClusterName, UnusableCluster>,
}

/// What there is to say of a cluster that is kept in the database, beside what it is.
#[derive(Debug, Clone)]
pub struct KeptFacts {
    pub revision: i64,
    pub incarnation: i64,
    /// As they were sent.
    pub settings: Value,
    /// Why this process cannot work with it at the moment; none when nothing speaks against it.
    pub unavailable: Option<String>,
}

/// A cluster in the database whose settings are no good: nobody works with it until they are mended.
#[derive(Debug, Clone)]
pub struct UnusableCluster {
    pub revision: i64,
    pub settings: Value,
    /// By their pointers into the settings.
    pub faults: Vec<Violation>,
}

impl KnownClusters {
    /// As they are now. Somebody who asks twice may hear of other ones.
    pub fn now(&self) -> Arc<ClusterSet> {
        Arc::clone(&self.0.read().unwrap_or_else(PoisonError::into_inner))
    }

    pub fn set(&self, set: ClusterSet) {
        *self.0.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(set);
    }
}

impl fmt::Debug for KnownClusters {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("KnownClusters").field(&self.now()).finish()
    }
}

impl ClusterSet {
    /// Those of the configuration file, and no others.
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

    /// None for one of the configuration file, and for one that does not exist.
    pub fn kept(&self, name: &ClusterName) -> Option<&KeptFacts> {
        self.kept.get(name)
    }

    pub fn is_in_file(&self, name: &ClusterName) -> bool {
        self.get(name).is_some() && !self.kept.contains_key(name)
    }

    pub fn unusable(&self) -> &BTreeMap<ClusterName, UnusableCluster> {
        &self.unusable
    }

    /// Which cluster the name means; none for one of the configuration file.
    pub(crate) fn incarnation(&self, name: &ClusterName) -> Option<i64> {
        self.kept(name).map(|facts| facts.incarnation)
    }
}

impl UnusableCluster {
    /// All that is wrong, in one sentence.
    pub fn reason(&self) -> String {
        let faults = self.faults.iter().map(|fault| format!("{}: {}", fault.pointer, fault.detail));
        faults.collect::<Vec<_>>().join("; ")
    }
}
