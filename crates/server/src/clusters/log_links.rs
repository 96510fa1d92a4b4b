//! The API's own links to the clusters, for logs.
//!
//! Reads of logs can be slow, and there can be many. On the worker's sessions they would delay polls and submissions; on a
//! session of their own they delay only each other.

use std::{
    collections::{HashMap, HashSet},
    sync::{Arc, OnceLock, PoisonError, RwLock},
};

use api::{LogReading, LogSource, LogUnavailable};
use domain::ClusterName;
use remote::{LogQuestion, ReadLogs};
use ssh::{PoolHealth, SshConfig, SshPool};
use worker::{ClusterLink as _, SshLink, Timeline};

use crate::config::ClusterConfig;

/// One session for each cluster, opened by the first read.
#[derive(Debug)]
pub(crate) struct LogLinks(RwLock<HashMap<ClusterName, Arc<LogLink>>>);

#[derive(Debug)]
struct LogLink {
    cluster: ClusterName,
    ssh: SshConfig,
    /// The timeline of its commands.
    timeline: Option<Timeline>,
    opened: OnceLock<SshLink>,
}

impl LogLinks {
    pub(crate) fn new(clusters: &[ClusterConfig], timeline: &Timeline) -> Self {
        let links = Self(RwLock::default());
        links.change(&HashSet::new(), clusters, timeline);
        links
    }

    /// Replaces clusters. Reads under way on a removed cluster finish.
    pub(crate) fn change(&self, gone: &HashSet<ClusterName>, come: &[ClusterConfig], timeline: &Timeline) {
        let mut links = self.0.write().unwrap_or_else(PoisonError::into_inner);
        links.retain(|name, _| !gone.contains(name));
        let link = |cluster: &ClusterConfig| {
            let name = cluster.cluster.name.clone();
            (name.clone(), Arc::new(LogLink::new(name, &cluster.ssh, Some(timeline.clone()))))
        };
        links.extend(come.iter().map(link));
    }

    fn link(&self, cluster: &ClusterName) -> Option<Arc<LogLink>> {
        self.0.read().unwrap_or_else(PoisonError::into_inner).get(cluster).cloned()
    }

    /// The health of a cluster's connection; none before the first read.
    pub(crate) fn health(&self, cluster: &ClusterName) -> Option<PoolHealth> {
        Some(self.link(cluster)?.opened.get()?.pool().health())
    }
}

impl LogLink {
    fn new(cluster: ClusterName, ssh: &SshConfig, timeline: Option<Timeline>) -> Self {
        let ssh = SshConfig { sessions: 1, ..ssh.clone() };
        Self { cluster, ssh, timeline, opened: OnceLock::new() }
    }

    fn open(&self) -> &SshLink {
        self.opened.get_or_init(|| {
            let link = SshLink::new(self.cluster.clone(), SshPool::start(self.ssh.clone()));
            match self.timeline.clone() {
                Some(timeline) => link.noting(timeline),
                None => link,
            }
        })
    }
}

impl LogSource for LogLinks {
    fn ask(&self, cluster: &ClusterName, questions: Vec<LogQuestion>) -> LogReading {
        let Some(link) = self.link(cluster).map(|link| link.open().clone()) else {
            let detail = format!("the cluster {cluster} is not configured");
            return Box::pin(async { Err(LogUnavailable { detail }) });
        };
        Box::pin(async move {
            let command = ReadLogs { questions };
            link.call(&command).await.map_err(|error| LogUnavailable { detail: error.to_string() })
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn logs_get_one_session_whatever_the_worker_has_and_none_before_the_first_read() {
        let worker = SshConfig { sessions: 4, ..SshConfig::new("jdoe", vec!["login1".parse().unwrap()]) };
        let link = LogLink::new("dgx".parse().unwrap(), &worker, None);
        assert!(link.opened.get().is_none());
        assert_eq!(link.ssh, SshConfig { sessions: 1, ..worker });
        assert_eq!(link.open().pool().health().sessions_open, 0, "a pool connects for its first command");
    }
}
