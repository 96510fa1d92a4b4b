//! Operations on a cluster that callers request. They have connections of their own, so that no poll waits for a caller.

mod preflight;

use std::{
    collections::{HashMap, HashSet},
    sync::{Arc, OnceLock, PoisonError, RwLock},
};

use api::{ClusterAnswer, ClusterOps, ClusterUnavailable};
use domain::{ClusterName, preflight::Check};
use remote::{InstallCredentials, RemoteCommand, TestOnly, TestOnlyAnswer};
use ssh::{PoolHealth, SshConfig, SshPool};
use tokio::sync::Mutex;
use worker::SshLink;

use crate::config::ClusterConfig;

/// One connection for each cluster, opened by the first operation.
#[derive(Debug)]
pub(crate) struct Operations(RwLock<HashMap<ClusterName, Arc<ClusterRuntime>>>);

#[derive(Debug)]
struct ClusterRuntime {
    config: ClusterConfig,
    link: OnceLock<SshLink>,
    /// A preflight logs in to every host anew, so only one runs at a time.
    preflight: Mutex<()>,
    /// Entries of one file are written one after the other.
    credentials: Mutex<()>,
}

impl Operations {
    pub(crate) fn new(clusters: &[ClusterConfig]) -> Self {
        let operations = Self(RwLock::default());
        operations.change(&HashSet::new(), clusters);
        operations
    }

    /// Replaces clusters. Operations under way on a removed cluster finish.
    pub(crate) fn change(&self, gone: &HashSet<ClusterName>, come: &[ClusterConfig]) {
        let runtime = |config: &ClusterConfig| {
            let runtime = ClusterRuntime {
                config: config.clone(),
                link: OnceLock::new(),
                preflight: Mutex::new(()),
                credentials: Mutex::new(()),
            };
            (config.cluster.name.clone(), Arc::new(runtime))
        };
        let mut runtimes = self.0.write().unwrap_or_else(PoisonError::into_inner);
        runtimes.retain(|name, _| !gone.contains(name));
        runtimes.extend(come.iter().map(runtime));
    }

    /// The health of a cluster's connection; none before the first operation.
    pub(crate) fn health(&self, cluster: &ClusterName) -> Option<PoolHealth> {
        Some(self.runtime(cluster).ok()?.link.get()?.pool().health())
    }

    fn runtime(&self, cluster: &ClusterName) -> Result<Arc<ClusterRuntime>, ClusterUnavailable> {
        let detail = || format!("the cluster {cluster} is not configured");
        let runtimes = self.0.read().unwrap_or_else(PoisonError::into_inner);
        runtimes.get(cluster).cloned().ok_or_else(|| ClusterUnavailable::Unanswered { detail: detail() })
    }
}

impl ClusterRuntime {
    async fn call<C: RemoteCommand>(&self, command: &C) -> Result<C::Output, ClusterUnavailable> {
        let (config, name) = (&self.config.ssh, &self.config.cluster.name);
        let open = || SshLink::new(name.clone(), SshPool::start(SshConfig { sessions: 1, ..config.clone() }));
        let answer = self.link.get_or_init(open).try_call(command).await;
        answer.map_err(|error| ClusterUnavailable::Unanswered { detail: error.to_string() })
    }
}

impl ClusterOps for Operations {
    fn preflight<'a>(&'a self, cluster: &'a ClusterName) -> ClusterAnswer<'a, Vec<Check>> {
        Box::pin(async move {
            let runtime = self.runtime(cluster)?;
            let _turn = runtime.preflight.try_lock().map_err(|_| ClusterUnavailable::Busy)?;
            Ok(preflight::run(&runtime.config).await)
        })
    }

    fn install_credentials<'a>(
        &'a self,
        cluster: &'a ClusterName,
        command: InstallCredentials,
    ) -> ClusterAnswer<'a, ()> {
        Box::pin(async move {
            let runtime = self.runtime(cluster)?;
            let _turn = runtime.credentials.lock().await;
            runtime.call(&command).await
        })
    }

    fn test_only<'a>(
        &'a self,
        cluster: &'a ClusterName,
        command: TestOnly,
    ) -> ClusterAnswer<'a, TestOnlyAnswer> {
        Box::pin(async move { self.runtime(cluster)?.call(&command).await })
    }
}
