//! The connections of this process to its clusters. Log readers and operations have connections of their own, because a slow
//! file system or a crowd of callers must not delay polls and submissions.

mod link_report;
mod preflight;

use std::{
    collections::{HashMap, HashSet},
    sync::{Arc, OnceLock, PoisonError, RwLock},
};

use api::{ClusterAnswer, ClusterOps, ClusterUnavailable, LogReading, LogSource, LogUnavailable};
use domain::{ClusterName, preflight::Check};
use persistence::{RpcBudgets as _, Store};
use remote::{InstallCredentials, LogQuestion, ReadLogs, RemoteCommand, TestOnly, TestOnlyAnswer};
use ssh::{SshConfig, SshPool};
use tokio::sync::Mutex;
use worker::{ClusterLink as _, Metered, SshLink, Timeline};

use crate::config::ClusterConfig;

/// The connections to all clusters.
pub(crate) struct ClusterConnections {
    /// Records the commands of the worker and of log readers.
    timeline: Timeline,
    /// Pays for the commands of callers.
    store: Store,
    clusters: RwLock<HashMap<ClusterName, Arc<Connections>>>,
}

/// The connections to one cluster.
struct Connections {
    config: ClusterConfig,
    /// None in a process without a worker.
    worker: Option<SshPool>,
    logs: OnceLock<SshPool>,
    operations: OnceLock<SshPool>,
    /// A preflight logs in to every host, so one runs at a time.
    preflight: Mutex<()>,
    /// Credentials share one file, so they are written one at a time.
    credentials: Mutex<()>,
}

impl Connections {
    fn new(config: ClusterConfig, worker: Option<SshPool>) -> Self {
        let (logs, operations) = (OnceLock::new(), OnceLock::new());
        let (preflight, credentials) = (Mutex::default(), Mutex::default());
        Self { config, worker, logs, operations, preflight, credentials }
    }

    /// A pool of one session that its first use opens: a cluster costs no connection that is not needed.
    fn on_demand<'a>(&self, pool: &'a OnceLock<SshPool>) -> &'a SshPool {
        pool.get_or_init(|| SshPool::start(one_session(&self.config.ssh)))
    }
}

fn one_session(ssh: &SshConfig) -> SshConfig {
    SshConfig { sessions: 1, ..ssh.clone() }
}

impl ClusterConnections {
    pub(crate) fn new(timeline: Timeline, store: Store) -> Self {
        Self { timeline, store, clusters: RwLock::default() }
    }

    /// A link over this pool. The timeline records its commands.
    pub(super) fn link(&self, cluster: &ClusterName, pool: &SshPool) -> SshLink {
        SshLink::new(cluster.clone(), pool.clone()).noting(self.timeline.clone())
    }

    /// Removes and adds clusters, each with the pool of the worker. Running commands on removed clusters finish.
    pub(super) fn change(
        &self,
        removed: &HashSet<ClusterName>,
        added: impl Iterator<Item = (ClusterConfig, Option<SshPool>)>,
    ) {
        let mut clusters = self.clusters.write().unwrap_or_else(PoisonError::into_inner);
        clusters.retain(|name, _| !removed.contains(name));
        clusters.extend(added.map(|(config, worker)| {
            (config.cluster.name.clone(), Arc::new(Connections::new(config, worker)))
        }));
    }

    fn get(&self, cluster: &ClusterName) -> Result<Arc<Connections>, ClusterUnavailable> {
        let clusters = self.clusters.read().unwrap_or_else(PoisonError::into_inner);
        let detail = || format!("the cluster {cluster} is not configured");
        clusters.get(cluster).cloned().ok_or_else(|| ClusterUnavailable::Unanswered { detail: detail() })
    }

    async fn operate<C: RemoteCommand>(
        &self,
        cluster: &ClusterName,
        command: &C,
    ) -> Result<C::Output, ClusterUnavailable> {
        let connections = self.get(cluster)?;
        let link = SshLink::new(cluster.clone(), connections.on_demand(&connections.operations).clone());
        let budget = connections.config.cluster.rpc_budget;
        Metered::new(link, self.store.clone(), cluster.clone(), budget)
            .call(command)
            .await
            .map_err(|error| ClusterUnavailable::Unanswered { detail: error.to_string() })
    }
}

impl LogSource for ClusterConnections {
    fn ask(&self, cluster: &ClusterName, questions: Vec<LogQuestion>) -> LogReading {
        let link =
            self.get(cluster).map(|connections| self.link(cluster, connections.on_demand(&connections.logs)));
        Box::pin(async move {
            let link = link.map_err(|error| LogUnavailable { detail: error.to_string() })?;
            let command = ReadLogs { questions };
            link.call(&command).await.map_err(|error| LogUnavailable { detail: error.to_string() })
        })
    }
}

impl ClusterOps for ClusterConnections {
    fn preflight<'a>(&'a self, cluster: &'a ClusterName) -> ClusterAnswer<'a, Vec<Check>> {
        Box::pin(async move {
            let connections = self.get(cluster)?;
            let _turn = connections.preflight.try_lock().map_err(|_| ClusterUnavailable::Busy)?;
            let (checks, rpcs) = preflight::run(&connections.config).await;
            // Never refused, because a person waits for it to find out what is wrong; later commands wait for longer.
            if let Some(budget) = connections.config.cluster.rpc_budget
                && let Err(error) = self.store.settle_rpcs(cluster, budget, 0, rpcs, false).await
            {
                tracing::warn!(cluster.name = %cluster, %error, "the requests of a preflight could not be counted");
            }
            Ok(checks)
        })
    }

    fn install_credentials<'a>(
        &'a self,
        cluster: &'a ClusterName,
        command: InstallCredentials,
    ) -> ClusterAnswer<'a, ()> {
        Box::pin(async move {
            let connections = self.get(cluster)?;
            let _turn = connections.credentials.lock().await;
            self.operate(cluster, &command).await
        })
    }

    fn test_only<'a>(
        &'a self,
        cluster: &'a ClusterName,
        command: TestOnly,
    ) -> ClusterAnswer<'a, TestOnlyAnswer> {
        Box::pin(async move { self.operate(cluster, &command).await })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::{self, Environment, Overrides};

    #[test]
    fn logs_have_one_session_that_the_first_read_opens() {
        let named = [("HOME", "/home/t"), ("SLURM_USER", "jdoe"), ("SLURM_HOSTNAME", "login1")];
        let config =
            config::load(&Overrides::default(), &Environment::of(&named)).unwrap().clusters.remove(0);
        let worker = SshConfig { sessions: 4, ..config.ssh.clone() };
        assert_eq!(one_session(&worker), SshConfig { sessions: 1, ..worker });
        let connections = Connections::new(config, None);
        assert!(connections.logs.get().is_none());
        let logs = connections.on_demand(&connections.logs);
        assert_eq!(logs.health().sessions_open, 0, "a pool connects for its first command");
        assert!(connections.logs.get().is_some() && connections.operations.get().is_none());
    }
}
