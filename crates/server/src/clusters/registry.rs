//! The clusters of this process: those of the configuration file, and those of the database as they change. An invalid row
//! in the database is listed with the reason; the other clusters go on.

use std::{
    collections::{HashMap, HashSet},
    mem,
    pin::Pin,
    sync::Arc,
    time::Duration,
};

use api::{CheckedCluster, ClusterKeeper, ClusterSet, KeptFacts, KnownClusters, UnusableCluster};
use domain::{ClusterIdentity, ClusterName, Violation};
use persistence::{ClusterListener, Store, StoreError, StoredCluster};
use serde_json::Value;
use ssh::SshPool;
use tokio::{sync::Mutex, time::sleep};
use tokio_util::sync::CancellationToken;
use worker::{ClusterTarget, Metered, Pace, SshLink, Worker};

use super::connections::ClusterConnections;
use crate::config::{ClusterConfig, KeptRules, key_fault};

/// The longest time between two refreshes, in case a notification is lost. Changes of key files send none.
const REFRESH_INTERVAL: Duration = Duration::from_secs(5);

/// Applies changes of the clusters to the worker, the connections and the API.
pub(crate) struct ClusterRegistry {
    store: Store,
    rules: KeptRules,
    /// The clusters of the configuration file.
    file: Vec<ClusterConfig>,
    known: KnownClusters,
    /// None in a process that serves the API only.
    worker: Option<Arc<Worker<Metered<SshLink>>>>,
    connections: Arc<ClusterConnections>,
    /// Locked during a refresh, so that changes are applied one at a time.
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// The rows of the database, as last read.
    rows: Vec<StoredCluster>,
    /// The revision of each cluster of the database that is in use.
    active: HashMap<ClusterName, i64>,
    /// The problem of each cluster that was logged last, so that each is logged once.
    problems: HashMap<ClusterName, String>,
}

impl ClusterRegistry {
    pub(crate) fn new(
        store: Store,
        rules: KeptRules,
        file: Vec<ClusterConfig>,
        worker: Option<Arc<Worker<Metered<SshLink>>>>,
        connections: Arc<ClusterConnections>,
    ) -> Self {
        let known = KnownClusters::default();
        let registry = Self { store, rules, file, known, worker, connections, state: Mutex::default() };
        registry.known.set(registry.file_set());
        registry.change(&HashSet::new(), registry.file.iter().map(|config| (config.clone(), None)).collect());
        registry
    }

    pub(crate) fn known(&self) -> KnownClusters {
        self.known.clone()
    }

    /// Refreshes after each notification of the database until `stop`. While the database is unavailable, the clusters stay
    /// as they are.
    pub(crate) async fn follow(self: Arc<Self>, stop: CancellationToken) {
        let mut listener: Option<ClusterListener> = None;
        while !stop.is_cancelled() {
            if listener.is_none() {
                let opened = self.store.listen_clusters().await;
                let log =
                    |error: &_| tracing::warn!(%error, "cannot listen for changes of the clusters; retrying");
                listener = opened.inspect_err(log).ok();
            }
            // After the listener has started, so that no change is missed in between.
            ClusterKeeper::refresh(&*self).await;
            let notification = async {
                match &mut listener {
                    Some(listener) => listener.next().await,
                    None => std::future::pending().await,
                }
            };
            let is_broken = tokio::select! {
                notified = notification => notified.is_err(),
                () = sleep(REFRESH_INTERVAL) => false,
                () = stop.cancelled() => return,
            };
            if is_broken {
                listener = None;
                stop.run_until_cancelled(sleep(REFRESH_INTERVAL)).await;
            }
        }
    }

    /// Applies what has changed in the database. If nothing has, this costs one small query.
    pub(crate) async fn refresh(&self) -> Result<(), StoreError> {
        let mut state = self.state.lock().await;
        let known = state.rows.iter().map(|row| (row.name.as_str(), row.revision));
        let now = self.store.cluster_revisions().await?;
        if !known.eq(now.iter().map(|(name, revision)| (name.as_str(), *revision))) {
            state.rows = self.store.stored_clusters().await?;
        }
        self.apply(&mut state);
        Ok(())
    }

    fn apply(&self, state: &mut State) {
        let mut set = self.file_set();
        let (mut problems, mut usable) = (HashMap::new(), HashMap::new());
        for StoredCluster { name, settings, revision, incarnation, .. } in state.rows.clone() {
            if self.file.iter().any(|config| config.cluster.name == name) {
                let problem = "the configuration file defines a cluster of the same name, which overrides it";
                problems.insert(name, problem.to_owned());
                continue;
            }
            match self.rules.check(&name, &settings) {
                Ok(config) => {
                    // Key files change without a notification, so each refresh checks them.
                    let unavailable = key_fault(&config);
                    problems.extend(unavailable.clone().map(|problem| (name.clone(), problem)));
                    let facts = KeptFacts { revision, incarnation, settings, unavailable };
                    set.add(config.cluster.clone(), facts);
                    usable.insert(name, (revision, incarnation, config));
                }
                Err(faults) => {
                    let unusable = UnusableCluster { revision, settings, faults };
                    problems.insert(name.clone(), unusable.reason());
                    set.add_unusable(name, unusable);
                }
            }
        }
        log_problems(&state.problems, &problems);
        state.problems = problems;
        let active = usable.iter().map(|(name, (revision, ..))| (name.clone(), *revision)).collect();
        let before = mem::replace(&mut state.active, active);
        let is_outdated =
            |(name, revision): &(&ClusterName, &i64)| state.active.get(*name) != Some(*revision);
        let removed: HashSet<_> = before.iter().filter(is_outdated).map(|(name, _)| name.clone()).collect();
        for name in removed.iter().filter(|name| !state.active.contains_key(*name)) {
            tracing::info!(cluster.name = %name, "the cluster was removed");
        }
        usable.retain(|name, _| removed.contains(name) || !before.contains_key(name));
        for (name, (_, incarnation, _)) in &usable {
            tracing::info!(cluster.name = %name, incarnation, "the cluster was added or changed");
        }
        let added = usable.into_values().map(|(_, incarnation, config)| (config, Some(incarnation)));
        // The API shows a cluster only once the worker and the connections have it.
        self.change(&removed, added.collect());
        self.known.set(set);
    }

    /// Removes and adds clusters, those of the database with their incarnation. The others are not disturbed.
    fn change(&self, removed: &HashSet<ClusterName>, added: Vec<(ClusterConfig, Option<i64>)>) {
        if removed.is_empty() && added.is_empty() {
            return;
        }
        let mut targets = Vec::new();
        let connected = added.into_iter().map(|(config, incarnation)| {
            let worker_pool = self.worker.as_ref().map(|_| {
                let pool = SshPool::start(config.ssh.clone());
                targets.push(ClusterTarget {
                    cluster: config.cluster.clone(),
                    incarnation,
                    link: Metered::new(
                        self.connections.link(&config.cluster.name, &pool),
                        self.store.clone(),
                        config.cluster.name.clone(),
                        config.cluster.rpc_budget,
                    ),
                    pace: Pace { min: config.poll_min, max: config.poll_max },
                });
                pool
            });
            (config, worker_pool)
        });
        self.connections.change(removed, connected);
        if let Some(worker) = &self.worker {
            worker.change(removed, targets);
        }
    }

    fn file_set(&self) -> ClusterSet {
        ClusterSet::of_file(self.file.iter().map(|config| config.cluster.clone()).collect())
    }
}

/// Logs each new problem of a cluster, and each one that is solved.
fn log_problems(before: &HashMap<ClusterName, String>, now: &HashMap<ClusterName, String>) {
    for (name, problem) in now.iter().filter(|(name, problem)| before.get(name) != Some(problem)) {
        tracing::warn!(cluster.name = %name, "a cluster in the database cannot be used: {problem}");
    }
    for name in before.keys().filter(|name| !now.contains_key(*name)) {
        tracing::info!(cluster.name = %name, "the cluster has no problems any more");
    }
}

impl ClusterKeeper for ClusterRegistry {
    fn check(&self, name: &ClusterName, settings: &Value) -> Result<CheckedCluster, Vec<Violation>> {
        let config = self.rules.check(name, settings)?;
        if let Some(problem) = key_fault(&config) {
            return Err(vec![Violation::new("/ssh_key", "unknown_key", problem)]);
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
                tracing::warn!(%error, "cannot read the clusters from the database; retrying");
            }
        })
    }
}
