//! The clusters that this process works with: those of the configuration file, and those in the database as they come and
//! go. A row that is no good costs itself: it is shown with the reason, and nobody else notices.

mod at_work;
mod follow;

use std::{
    collections::{HashMap, HashSet},
    pin::Pin,
};

use api::{CheckedCluster, ClusterKeeper, ClusterSet, KeptFacts, KnownClusters, UnusableCluster};
use domain::{ClusterIdentity, ClusterName, Violation};
use persistence::{Store, StoreError, StoredCluster};
use serde_json::Value;
use tokio::sync::Mutex;

use crate::config::{ClusterConfig, KeptRules, key_fault};

pub(crate) use at_work::AtWork;

/// Takes clusters in and lets them go.
pub(crate) struct Clusters {
    store: Store,
    rules: KeptRules,
    of_file: Vec<ClusterConfig>,
    known: KnownClusters,
    at_work: AtWork,
    /// One change at a time.
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// As they were last read.
    rows: Vec<StoredCluster>,
    /// Those that are worked with, at which revision.
    taken: HashMap<ClusterName, i64>,
    /// What was last said against each, so that it is said once.
    said: HashMap<ClusterName, String>,
}

impl Clusters {
    pub(crate) fn new(store: Store, rules: KeptRules, of_file: Vec<ClusterConfig>, at_work: AtWork) -> Self {
        let known = KnownClusters::default();
        known.set(file_set(&of_file));
        Self { store, rules, of_file, known, at_work, state: Mutex::default() }
    }

    pub(crate) fn known(&self) -> KnownClusters {
        self.known.clone()
    }

    /// Brings this process up to what the database says. While nothing has changed there, that is one small question.
    pub(crate) async fn refresh(&self) -> Result<(), StoreError> {
        let mut state = self.state.lock().await;
        let known = state.rows.iter().map(|row| (row.name.as_str(), row.revision));
        let now = self.store.cluster_revisions().await?;
        if !known.eq(now.iter().map(|(name, revision)| (name.as_str(), *revision))) {
            state.rows = self.store.stored_clusters().await?;
        }
        let rows = state.rows.clone();
        self.take_in(&mut state, rows);
        Ok(())
    }

    fn take_in(&self, state: &mut State, rows: Vec<StoredCluster>) {
        let mut set = file_set(&self.of_file);
        let (mut against, mut wanted) = (HashMap::new(), HashMap::new());
        for StoredCluster { name, settings, revision, incarnation, .. } in rows {
            if self.of_file.iter().any(|config| config.cluster.name == name) {
                against.insert(
                    name,
                    "the configuration file has a cluster of this name, which counts".to_owned(),
                );
                continue;
            }
            match self.rules.check(&name, &settings) {
                Ok(config) => {
                    // Files come and go without a word, so they are looked at each time.
                    let unavailable = key_fault(&config);
                    against.extend(unavailable.clone().map(|why| (name.clone(), why)));
                    set.add(
                        config.cluster.clone(),
                        KeptFacts { revision, incarnation, settings, unavailable },
                    );
                    wanted.insert(name, (revision, incarnation, config));
                }
                Err(faults) => {
                    let unusable = UnusableCluster { revision, settings, faults };
                    against.insert(name.clone(), unusable.reason());
                    set.add_unusable(name, unusable);
                }
            }
        }
        say(&state.said, &against);
        state.said = against;
        let revision_of = |name: &ClusterName| wanted.get(name).map(|(revision, ..)| *revision);
        let taken = std::mem::take(&mut state.taken);
        let gone: HashSet<ClusterName> = taken
            .iter()
            .filter(|(name, revision)| revision_of(name) != Some(**revision))
            .map(|(name, _)| name.clone())
            .collect();
        state.taken = wanted.iter().map(|(name, (revision, ..))| (name.clone(), *revision)).collect();
        let come: Vec<_> = wanted
            .into_iter()
            .filter(|(name, _)| gone.contains(name) || !taken.contains_key(name))
            .map(|(_, (_, incarnation, config))| (config, incarnation))
            .collect();
        for name in gone.iter().filter(|name| !state.taken.contains_key(*name)) {
            tracing::info!(cluster.name = %name, "the cluster is not worked with any more");
        }
        for (config, incarnation) in &come {
            tracing::info!(cluster.name = %config.cluster.name, incarnation, "the cluster is worked with as it is kept now");
        }
        // Whoever is told of a cluster finds it at work.
        self.at_work.change(&gone, come);
        self.known.set(set);
    }
}

fn file_set(of_file: &[ClusterConfig]) -> ClusterSet {
    ClusterSet::of_file(of_file.iter().map(|config| config.cluster.clone()).collect())
}

/// Says of each cluster what is new against it, and when nothing is any more.
fn say(before: &HashMap<ClusterName, String>, now: &HashMap<ClusterName, String>) {
    for (name, why) in now.iter().filter(|(name, why)| before.get(name) != Some(why)) {
        tracing::warn!(cluster.name = %name, "a cluster in the database cannot be worked with: {why}");
    }
    for name in before.keys().filter(|name| !now.contains_key(*name)) {
        tracing::info!(cluster.name = %name, "nothing is known against the cluster any more");
    }
}

impl ClusterKeeper for Clusters {
    fn check(&self, name: &ClusterName, settings: &Value) -> Result<CheckedCluster, Vec<Violation>> {
        let config = self.rules.check(name, settings)?;
        if let Some(why) = key_fault(&config) {
            return Err(vec![Violation::new("/ssh_key", "unknown_key", why)]);
        }
        let identity = ClusterIdentity {
            user: config.cluster.user.clone(),
            hosts: config.ssh.hosts.iter().map(|host| format!("{}:{}", host.host(), host.port())).collect(),
            base_dir: config.cluster.base_dir.clone(),
        };
        Ok(CheckedCluster { cluster: config.cluster, identity })
    }

    fn refresh(&self) -> Pin<Box<dyn Future<Output = ()> + Send + '_>> {
        Box::pin(async {
            if let Err(error) = Self::refresh(self).await {
                tracing::warn!(%error, "cannot read the clusters that are kept; trying again");
            }
        })
    }
}
