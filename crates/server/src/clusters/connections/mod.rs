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
use remote::{InstallCredentials, LogQuestion, ReadLogs, RemoteCommand, TestOnly, TestOnlyAnswer};
use ssh::{SshConfig, SshPool};
use tokio::sync::Mutex;
use worker::{ClusterLink as _, SshLink, Timeline};

use crate::config::ClusterConfig;

/// The connections to all clusters.
pub(crate) struct ClusterConnections {
    /// Records the commands of the worker and of log readers.
    timeline: Timeline,
    clusters: RwLock<HashMap<ClusterName, Arc<Connections>>>,
}

/// The connections to one cluster.
struct Connections {
    config: ClusterConfig,
    /// None in a process without a worker.
    worker: Option<SshPool>,
    logs: OnDemand,
    operations: OnDemand,
    /// A preflight logs in to every host, so one runs at a time.
    preflight: Mutex<()>,
    /// Credentials share one file, so they are written one at a time.
    credentials: Mutex<()>,
}

/// A pool of one session that its first use opens: a cluster costs no connection that is not needed.
struct OnDemand {
    ssh: SshConfig,
    pool: OnceLock<SshPool>,
}

impl OnDemand {
    fn new(ssh: &SshConfig) -> Self {
        Self { ssh: SshConfig { sessions: 1, ..ssh.clone() }, pool: OnceLock::new() }
    }

    fn pool(&self) -> &SshPool {
        self.pool.get_or_init(|| SshPool::start(self.ssh.clone()))
    }

    fn opened(&self) -> Option<&SshPool> {
        self.pool.get()
    }
}

impl ClusterConnections {
    pub(crate) fn new(timeline: Timeline) -> Self {
        Self { timeline, clusters: RwLock::default() }
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
            let connections = Connections {
                logs: OnDemand::new(&config.ssh),
                operations: OnDemand::new(&config.ssh),
                worker,
                preflight: Mutex::default(),
                credentials: Mutex::default(),
                config,
            };
            (connections.config.cluster.name.clone(), Arc::new(connections))
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
        SshLink::new(cluster.clone(), connections.operations.pool().clone())
            .try_call(command)
            .await
            .map_err(|error| ClusterUnavailable::Unanswered { detail: error.to_string() })
    }
}

impl LogSource for ClusterConnections {
    fn ask(&self, cluster: &ClusterName, questions: Vec<LogQuestion>) -> LogReading {
        let link = self.get(cluster).map(|connections| self.link(cluster, connections.logs.pool()));
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
            Ok(preflight::run(&connections.config).await)
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

    #[test]
    fn logs_have_one_session_that_the_first_read_opens() {
        let worker = SshConfig { sessions: 4, ..SshConfig::new("jdoe", vec!["login1".parse().unwrap()]) };
        let logs = OnDemand::new(&worker);
        assert!(logs.opened().is_none());
        assert_eq!(logs.ssh, SshConfig { sessions: 1, ..worker });
        assert_eq!(logs.pool().health().sessions_open, 0, "a pool connects for its first command");
    }
}
