//! Numbers that nobody counts as they happen: read now and then, and shown with the others.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
    time::Duration,
};

use api::{ClusterLinks, HostState, KnownClusters, LinkReport, Readiness};
use chrono::TimeDelta;
use domain::{ClusterName, Phase};
use metrics::{counter, gauge};
use persistence::{Store, Workload};
use strum::IntoEnumIterator;
use tokio_util::sync::CancellationToken;

use crate::{clusters::links::Links, wiring::WorkerPulse};

/// Half as often as Prometheus looks by default.
const READ_EVERY: Duration = Duration::from_secs(15);

const HOST_STATES: [(HostState, &str); 5] = [
    (HostState::Untried, "untried"),
    (HostState::Up, "up"),
    (HostState::Down, "down"),
    (HostState::AuthRefused, "auth_refused"),
    (HostState::HostKeyRefused, "host_key_refused"),
];

/// Where the numbers are.
pub(crate) struct Gauges {
    pub(crate) store: Store,
    pub(crate) clusters: KnownClusters,
    pub(crate) links: Arc<Links>,
    pub(crate) pulse: Arc<WorkerPulse>,
}

impl Gauges {
    /// Reads them until `stop`.
    pub(crate) async fn run(&self, stop: CancellationToken) {
        // A cluster that was shown once goes back to 0 instead of staying as it was.
        let mut shown = BTreeSet::new();
        loop {
            shown.extend(self.clusters.now().all().iter().map(|cluster| cluster.name.clone()));
            self.of_this_process(&shown);
            if let Some(Err(error)) = stop.run_until_cancelled(self.of_jobs(&mut shown)).await {
                tracing::warn!(%error, "the jobs cannot be counted; their numbers stay as they were");
            }
            if stop.run_until_cancelled(tokio::time::sleep(READ_EVERY)).await.is_none() {
                return;
            }
        }
    }

    fn of_this_process(&self, shown: &BTreeSet<ClusterName>) {
        let connections = self.store.connections();
        gauge!("db_pool_connections", "state" => "used").set(connections.used);
        gauge!("db_pool_connections", "state" => "idle").set(connections.idle);
        gauge!("db_pool_connections_limit").set(connections.limit);
        #[expect(clippy::cast_precision_loss, reason = "there are a handful of loops")]
        gauge!("worker_loops_stuck").set(self.pulse.not_ready().len() as f64);
        for cluster in shown {
            show_links(cluster, &self.links.links(cluster));
        }
    }

    async fn of_jobs(&self, shown: &mut BTreeSet<ClusterName>) -> Result<(), persistence::StoreError> {
        let workload = self.store.workload().await?;
        shown.extend(workload.iter().map(|of| of.cluster.clone()));
        for cluster in shown.iter() {
            let Summed { phases, overdue } = summed(&workload, cluster);
            for (phase, jobs) in phases {
                let phase = <&str>::from(phase);
                #[expect(clippy::cast_precision_loss, reason = "so many jobs there are not")]
                gauge!("jobs_in_phase", "cluster" => cluster.to_string(), "phase" => phase).set(jobs as f64);
            }
            gauge!("jobs_overdue_seconds", "cluster" => cluster.to_string()).set(overdue.as_seconds_f64());
        }
        Ok(())
    }
}

/// The jobs of a cluster, and for how long the longest has waited for a worker.
struct Summed {
    phases: Vec<(Phase, u64)>,
    overdue: TimeDelta,
}

/// A phase without jobs is shown with none.
fn summed(workload: &[Workload], cluster: &ClusterName) -> Summed {
    let found = || workload.iter().filter(|of| of.cluster == *cluster);
    let phases = Phase::iter().filter(|phase| !matches!(phase, Phase::Paused | Phase::Ended));
    let jobs = |phase| found().filter(|of| of.phase == phase).map(|of| of.jobs).sum();
    Summed {
        phases: phases.map(|phase| (phase, jobs(phase))).collect(),
        overdue: found().filter_map(|of| of.overdue).max().unwrap_or_default(),
    }
}

/// The connections of this process to a cluster, whatever they are for.
fn show_links(cluster: &ClusterName, links: &[LinkReport]) {
    let connects = links.iter().map(|link| link.connects_total).sum();
    counter!("ssh_connects_total", "cluster" => cluster.to_string()).absolute(connects);
    let open: usize = links.iter().map(|link| link.sessions_open).sum();
    #[expect(clippy::cast_precision_loss, reason = "there are a handful of sessions")]
    gauge!("ssh_sessions", "cluster" => cluster.to_string()).set(open as f64);
    let states = host_states(links);
    for (state, name) in HOST_STATES {
        let hosts = states.values().filter(|worst| **worst == state).count();
        #[expect(clippy::cast_precision_loss, reason = "there are a handful of hosts")]
        gauge!("ssh_hosts", "cluster" => cluster.to_string(), "state" => name).set(hosts as f64);
    }
}

/// What each login host showed to the first use that tried it: the worker's, if this process has one.
fn host_states(links: &[LinkReport]) -> BTreeMap<&str, HostState> {
    let mut states = BTreeMap::new();
    for host in links.iter().flat_map(|link| &link.hosts) {
        let state = states.entry(host.host.as_str()).or_insert(HostState::Untried);
        if *state == HostState::Untried {
            *state = host.state;
        }
    }
    states
}

#[cfg(test)]
mod tests {
    use api::{HostReport, LinkUse};

    use super::*;

    #[test]
    fn a_cluster_without_jobs_is_shown_with_none_and_the_longest_wait_of_all_phases_counts() {
        let name = |text: &str| text.parse::<ClusterName>().unwrap();
        let of = |phase, jobs, seconds: Option<i64>| Workload {
            cluster: name("dgx"),
            phase,
            jobs,
            overdue: seconds.map(TimeDelta::seconds),
        };
        let workload =
            [of(Phase::Queued, 3, Some(7)), of(Phase::Finishing, 1, Some(70)), of(Phase::Running, 5, None)];
        let Summed { phases, overdue } = summed(&workload, &name("dgx"));
        assert!(phases.contains(&(Phase::Queued, 3)) && phases.contains(&(Phase::Running, 5)), "{phases:?}");
        assert_eq!(overdue, TimeDelta::seconds(70));
        let Summed { phases, overdue } = summed(&workload, &name("empty"));
        assert!(!phases.is_empty() && phases.iter().all(|(_, jobs)| *jobs == 0), "{phases:?}");
        assert_eq!(overdue, TimeDelta::zero());
    }

    #[test]
    fn a_host_that_one_use_has_tried_counts_as_that_use_found_it() {
        let link = |used_for, state| LinkReport {
            used_for,
            hosts: vec![HostReport {
                host: "login1".to_owned(),
                state,
                for_the_last: None,
                last_error: None,
                retry_in: None,
            }],
            sessions_open: 0,
            connects_total: 0,
            commands_total: 0,
            failures_total: 0,
        };
        let links = [
            link(LinkUse::Worker, HostState::Untried),
            link(LinkUse::Logs, HostState::AuthRefused),
            link(LinkUse::Operations, HostState::Up),
        ];
        assert_eq!(host_states(&links), BTreeMap::from([("login1", HostState::AuthRefused)]));
    }
}
