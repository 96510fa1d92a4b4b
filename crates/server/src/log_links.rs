//! The API's own way to the clusters, for logs.
//!
//! Reading a log takes as long as the cluster's file system does, and readers come in crowds. On the worker's
//! sessions they would stand before polls and submissions; on one session of their own they delay only each other.

use std::{collections::HashMap, sync::OnceLock};

use api::{LogReading, LogSource, LogUnavailable};
use domain::ClusterName;
use slurm::{LogQuestion, ReadLogs};
use ssh::{PoolHealth, SshConfig, SshPool};
use worker::SshLink;

use crate::config::ClusterConfig;

/// One session a cluster, opened by the first read: a cluster whose logs nobody reads carries no connection more.
#[derive(Debug)]
pub(crate) struct LogLinks(HashMap<ClusterName, LogLink>);

#[derive(Debug)]
struct LogLink {
    ssh: SshConfig,
    opened: OnceLock<SshLink>,
}

impl LogLinks {
    pub(crate) fn new(clusters: &[ClusterConfig]) -> Self {
        let link = |cluster: &ClusterConfig| (cluster.cluster.name.clone(), LogLink::new(&cluster.ssh));
        Self(clusters.iter().map(link).collect())
    }
}

impl LogLinks {
    /// What is known of a cluster's connection; none before the first read.
    pub(crate) fn health(&self, cluster: &ClusterName) -> Option<PoolHealth> {
        Some(self.0.get(cluster)?.opened.get()?.pool().health())
    }
}

impl LogLink {
    fn new(ssh: &SshConfig) -> Self {
        Self { ssh: SshConfig { sessions: 1, ..ssh.clone() }, opened: OnceLock::new() }
    }

    fn open(&self) -> &SshLink {
        self.opened.get_or_init(|| SshLink::new(SshPool::start(self.ssh.clone())))
    }
}

impl LogSource for LogLinks {
    fn ask(&self, cluster: &ClusterName, questions: Vec<LogQuestion>) -> LogReading {
        let Some(link) = self.0.get(cluster).map(|link| link.open().clone()) else {
            let detail = format!("the cluster {cluster} is not configured");
            return Box::pin(async { Err(LogUnavailable { detail }) });
        };
        Box::pin(async move {
            let command = ReadLogs { questions };
            link.read_logs(&command).await.map_err(|error| LogUnavailable { detail: error.to_string() })
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn logs_get_one_session_whatever_the_worker_has_and_none_before_the_first_read() {
        let worker = SshConfig { sessions: 4, ..SshConfig::new("jdoe", vec!["login1".parse().unwrap()]) };
        let link = LogLink::new(&worker);
        assert!(link.opened.get().is_none());
        assert_eq!(link.ssh, SshConfig { sessions: 1, ..worker });
        assert_eq!(link.open().pool().health().sessions_open, 0, "a pool connects for its first command");
    }
}
