//! What callers ask of a cluster itself: tried over connections of its own, so that no poll waits behind a caller.

mod preflight;

use std::{
    collections::{HashMap, HashSet},
    sync::{Arc, OnceLock, PoisonError, RwLock},
};

use api::{ClusterAnswer, ClusterOps, ClusterUnavailable};
use domain::{ClusterName, preflight::Check};
use remote::{InstallCredentials, ParseError, RawOutput, RemoteCommand, TestOnly, TestOnlyAnswer};
use ssh::{Command, PoolHealth, SshConfig, SshError, SshPool};
use tokio::sync::Mutex;

use crate::config::ClusterConfig;

/// One connection a cluster, opened when something is first asked.
#[derive(Debug)]
pub(crate) struct Operations(RwLock<HashMap<ClusterName, Arc<Site>>>);

#[derive(Debug)]
struct Site {
    config: ClusterConfig,
    pool: OnceLock<SshPool>,
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
                pool: OnceLock::new(),
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
        Some(self.site(cluster).ok()?.pool.get()?.health())
    }

    fn site(&self, cluster: &ClusterName) -> Result<Arc<Site>, ClusterUnavailable> {
        let detail = || format!("the cluster {cluster} is not configured");
        let sites = self.0.read().unwrap_or_else(PoisonError::into_inner);
        sites.get(cluster).cloned().ok_or_else(|| ClusterUnavailable::Unanswered { detail: detail() })
    }
}

impl Site {
    async fn ask<C: RemoteCommand>(&self, command: &C) -> Result<C::Output, ClusterUnavailable> {
        let open = || SshPool::start(SshConfig { sessions: 1, ..self.config.ssh.clone() });
        ask(self.pool.get_or_init(open), command)
            .await
            .map_err(|error| ClusterUnavailable::Unanswered { detail: error.to_string() })
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

/// A command that brought no answer.
#[derive(Debug, thiserror::Error)]
enum AskError {
    #[error("{0}. {advice}", advice = .0.advice())]
    Ssh(#[from] SshError),
    #[error(transparent)]
    Answer(#[from] ParseError),
}

/// All of these may be asked again, on another host too: they look, or write the same once more.
async fn ask<C: RemoteCommand>(pool: &SshPool, command: &C) -> Result<C::Output, AskError> {
    let call = command.render();
    let sent = Command {
        program: call.program,
        stdin: call.stdin,
        deadline: call.deadline,
        stdout_limit: call.stdout_limit,
        repeatable: true,
    };
    let output = pool.run(sent).await?;
    let raw = RawOutput { stdout: output.stdout, stderr: output.stderr, exit_code: output.exit_code };
    Ok(command.parse(&raw)?)
}
