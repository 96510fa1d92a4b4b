//! What callers ask of a cluster itself: tried over connections of its own, so that no poll waits behind a caller.

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

/// One connection a cluster, opened when something is first asked.
#[derive(Debug)]
pub(crate) struct Operations(RwLock<HashMap<ClusterName, Arc<Site>>>);

#[derive(Debug)]
struct Site {
    config: ClusterConfig,
    link: OnceLock<SshLink>,
    /// Preflights log in to every host anew: one at a time is enough for a login host.
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

    /// What is being asked of one that goes is asked to its end.
    pub(crate) fn change(&self, gone: &HashSet<ClusterName>, come: &[ClusterConfig]) {
        let site = |config: &ClusterConfig| {
            let site = Site {
                config: config.clone(),
                link: OnceLock::new(),
                preflight: Mutex::new(()),
                credentials: Mutex::new(()),
            };
            (config.cluster.name.clone(), Arc::new(site))
        };
        let mut sites = self.0.write().unwrap_or_else(PoisonError::into_inner);
        sites.retain(|name, _| !gone.contains(name));
        sites.extend(come.iter().map(site));
    }

    /// What is known of a cluster's connection; none before something was asked.
    pub(crate) fn health(&self, cluster: &ClusterName) -> Option<PoolHealth> {
        Some(self.site(cluster).ok()?.link.get()?.pool().health())
    }

    fn site(&self, cluster: &ClusterName) -> Result<Arc<Site>, ClusterUnavailable> {
        let detail = || format!("the cluster {cluster} is not configured");
        let sites = self.0.read().unwrap_or_else(PoisonError::into_inner);
        sites.get(cluster).cloned().ok_or_else(|| ClusterUnavailable::Unanswered { detail: detail() })
    }
}

impl Site {
    async fn ask<C: RemoteCommand>(&self, command: &C) -> Result<C::Output, ClusterUnavailable> {
        let (config, name) = (&self.config.ssh, &self.config.cluster.name);
        let open = || SshLink::new(name.clone(), SshPool::start(SshConfig { sessions: 1, ..config.clone() }));
        let answer = self.link.get_or_init(open).try_call(command).await;
        answer.map_err(|error| ClusterUnavailable::Unanswered { detail: error.to_string() })
    }
}

impl ClusterOps for Operations {
    fn preflight<'a>(&'a self, cluster: &'a ClusterName) -> ClusterAnswer<'a, Vec<Check>> {
        Box::pin(async move {
            let site = self.site(cluster)?;
            let _turn = site.preflight.try_lock().map_err(|_| ClusterUnavailable::Busy)?;
            Ok(preflight::run(&site.config).await)
        })
    }

    fn install_credentials<'a>(
        &'a self,
        cluster: &'a ClusterName,
        command: InstallCredentials,
    ) -> ClusterAnswer<'a, ()> {
        Box::pin(async move {
            let site = self.site(cluster)?;
            let _turn = site.credentials.lock().await;
            site.ask(&command).await
        })
    }

    fn test_only<'a>(
        &'a self,
        cluster: &'a ClusterName,
        command: TestOnly,
    ) -> ClusterAnswer<'a, TestOnlyAnswer> {
        Box::pin(async move { self.site(cluster)?.ask(&command).await })
    }
}
