//! The state of this process's connections, in the terms of the API.

use std::time::Instant;

use api::{ClusterLinks, HostReport, LinkReport, LinkUse};
use domain::ClusterName;
use ssh::{HostHealth, HostPort, HostState, PoolHealth, SshPool};

use super::ClusterConnections;

impl ClusterLinks for ClusterConnections {
    fn links(&self, cluster: &ClusterName) -> Vec<LinkReport> {
        let Ok(connections) = self.get(cluster) else { return Vec::new() };
        let uses =
            [(LinkUse::Logs, connections.logs.get()), (LinkUse::Operations, connections.operations.get())];
        let worker = connections.worker.as_ref().map(|pool| (LinkUse::Worker, Some(pool)));
        let hosts = &connections.config.ssh.hosts;
        let report = |(used_for, pool): (LinkUse, Option<&SshPool>)| {
            report(used_for, pool.map(SshPool::health), hosts)
        };
        worker.into_iter().chain(uses).map(report).collect()
    }
}

/// A pool that is not open yet has only the names of its hosts.
fn report(used_for: LinkUse, health: Option<PoolHealth>, hosts: &[HostPort]) -> LinkReport {
    let now = Instant::now();
    let health = health.unwrap_or_else(|| PoolHealth {
        hosts: hosts.iter().cloned().map(untried).collect(),
        sessions_open: 0,
        connects_total: 0,
        commands_total: 0,
        failures_total: 0,
    });
    LinkReport {
        used_for,
        hosts: health.hosts.iter().map(|host| found(host, now)).collect(),
        sessions_open: health.sessions_open,
        connects_total: health.connects_total,
        commands_total: health.commands_total,
        failures_total: health.failures_total,
    }
}

fn untried(host: HostPort) -> HostHealth {
    HostHealth { host, state: HostState::Untried, last_error: None, next_try: None }
}

fn found(host: &HostHealth, now: Instant) -> HostReport {
    let (state, since) = match &host.state {
        HostState::Untried => (api::HostState::Untried, None),
        HostState::Up => (api::HostState::Up, None),
        HostState::Down { since } => (api::HostState::Down, Some(since)),
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
    fn a_host_in_backoff_shows_since_when_and_until_when() {
        let since = Instant::now();
        let now = since + Duration::from_secs(30);
        let host = HostHealth {
            host: "login1:2222".parse().unwrap(),
            state: HostState::Down { since },
            last_error: Some("connection refused".to_owned()),
            next_try: Some(now + Duration::from_secs(10)),
        };
        let report = found(&host, now);
        assert_eq!((report.host.as_str(), report.state), ("login1:2222", api::HostState::Down));
        assert_eq!(report.for_the_last, Some(Duration::from_secs(30)));
        assert_eq!(report.retry_in, Some(Duration::from_secs(10)));
    }

    #[test]
    fn a_pool_that_is_not_open_lists_its_hosts() {
        let report = report(LinkUse::Logs, None, &["login1".parse().unwrap()]);
        assert_eq!((report.hosts.len(), report.connects_total), (1, 0));
        assert_eq!(report.hosts[0].state, api::HostState::Untried);
    }
}
