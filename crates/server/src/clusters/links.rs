//! The health of this process's connections, for the API.

use std::{
    collections::{HashMap, HashSet},
    sync::{Arc, PoisonError, RwLock},
    time::Instant,
};

use api::{ClusterLinks, HostReport, LinkReport, LinkUse};
use domain::ClusterName;
use ssh::{HostHealth, HostPort, HostState, PoolHealth, SshPool};
use worker::{ClusterTarget, SshLink};

use crate::{
    clusters::{log_links::LogLinks, operations::Operations},
    config::ClusterConfig,
};

/// The pools of this process, by cluster.
#[derive(Debug)]
pub(crate) struct Links {
    clusters: RwLock<HashMap<ClusterName, Link>>,
    logs: Arc<LogLinks>,
    ops: Arc<Operations>,
}

#[derive(Debug, Clone)]
struct Link {
    hosts: Vec<HostPort>,
    /// None in a process without a worker.
    worker: Option<SshPool>,
}

impl Links {
    pub(crate) fn new(
        clusters: &[ClusterConfig],
        targets: &[ClusterTarget<SshLink>],
        logs: Arc<LogLinks>,
        ops: Arc<Operations>,
    ) -> Self {
        let links = Self { clusters: RwLock::default(), logs, ops };
        links.change(&HashSet::new(), clusters, targets);
        links
    }

    pub(crate) fn change(
        &self,
        gone: &HashSet<ClusterName>,
        come: &[ClusterConfig],
        targets: &[ClusterTarget<SshLink>],
    ) {
        let pool = |name: &ClusterName| {
            let target = targets.iter().find(|target| target.cluster.name == *name)?;
            Some(target.link.pool().clone())
        };
        let link = |config: &ClusterConfig| {
            let name = &config.cluster.name;
            (name.clone(), Link { hosts: config.ssh.hosts.clone(), worker: pool(name) })
        };
        let mut links = self.clusters.write().unwrap_or_else(PoisonError::into_inner);
        links.retain(|name, _| !gone.contains(name));
        links.extend(come.iter().map(link));
    }
}

impl ClusterLinks for Links {
    fn links(&self, cluster: &ClusterName) -> Vec<LinkReport> {
        let link = self.clusters.read().unwrap_or_else(PoisonError::into_inner).get(cluster).cloned();
        let Some(Link { hosts, worker }) = link else { return Vec::new() };
        let worker = worker.map(|pool| report(LinkUse::Worker, Some(pool.health()), &hosts));
        let logs = report(LinkUse::Logs, self.logs.health(cluster), &hosts);
        let ops = report(LinkUse::Operations, self.ops.health(cluster), &hosts);
        worker.into_iter().chain([logs, ops]).collect()
    }
}

/// A pool that was not opened yet reports only its hosts.
fn report(used_for: LinkUse, health: Option<PoolHealth>, hosts: &[HostPort]) -> LinkReport {
    let Some(health) = health else {
        return LinkReport {
            used_for,
            hosts: hosts.iter().map(untried).collect(),
            sessions_open: 0,
            connects_total: 0,
            commands_total: 0,
            failures_total: 0,
        };
    };
    let now = Instant::now();
    LinkReport {
        used_for,
        hosts: health.hosts.iter().map(|host| found(host, now)).collect(),
        sessions_open: health.sessions_open,
        connects_total: health.connects_total,
        commands_total: health.commands_total,
        failures_total: health.failures_total,
    }
}

fn untried(host: &HostPort) -> HostReport {
    HostReport {
        host: host.to_string(),
        state: api::HostState::Untried,
        for_the_last: None,
        last_error: None,
        retry_in: None,
    }
}

fn found(host: &HostHealth, now: Instant) -> HostReport {
    let (state, since) = match &host.state {
        HostState::Untried => (api::HostState::Untried, None),
        HostState::Up => (api::HostState::Up, None),
        HostState::Down { since, .. } => (api::HostState::Down, Some(since)),
        HostState::AuthRefused { since, .. } => (api::HostState::AuthRefused, Some(since)),
        HostState::HostKeyRefused { since, .. } => (api::HostState::HostKeyRefused, Some(since)),
    };
    HostReport {
        host: host.host.to_string(),
        state,
        for_the_last: since.map(|since| now.saturating_duration_since(*since)),
        last_error: host.last_error.clone(),
        retry_in: host.next_try.map(|at| at.saturating_duration_since(now)),
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn a_host_that_is_left_alone_says_since_when_and_for_how_long() {
        let since = Instant::now();
        let now = since + Duration::from_secs(30);
        let error = "connection refused".to_owned();
        let host = HostHealth {
            host: "login1:2222".parse().unwrap(),
            state: HostState::Down { since, error: error.clone() },
            last_error: Some(error),
            next_try: Some(now + Duration::from_secs(10)),
        };
        let report = found(&host, now);
        assert_eq!((report.host.as_str(), report.state), ("login1:2222", api::HostState::Down));
        assert_eq!(report.for_the_last, Some(Duration::from_secs(30)));
        assert_eq!(report.retry_in, Some(Duration::from_secs(10)));
    }

    #[test]
    fn a_pool_that_was_never_opened_names_its_hosts() {
        let report = report(LinkUse::Logs, None, &["login1".parse().unwrap()]);
        assert_eq!((report.hosts.len(), report.connects_total), (1, 0));
        assert_eq!(report.hosts[0].state, api::HostState::Untried);
    }
}
