//! Gauges that are sampled: jobs by phase, connections and stuck worker loops.

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

use crate::{clusters::connections::ClusterConnections, wiring::WorkerPulse};

/// A quarter of Prometheus's default scrape interval.
const SAMPLE_INTERVAL: Duration = Duration::from_secs(15);

const HOST_STATES: [(HostState, &str); 5] = [
    (HostState::Untried, "untried"),
    (HostState::Up, "up"),
    (HostState::Down, "down"),
    (HostState::AuthRefused, "auth_refused"),
    (HostState::HostKeyRefused, "host_key_refused"),
];

/// The sources of the gauges.
pub(crate) struct Gauges {
    pub(crate) store: Store,
    pub(crate) clusters: KnownClusters,
    pub(crate) connections: Arc<ClusterConnections>,
    pub(crate) pulse: Arc<WorkerPulse>,
}

impl Gauges {
    /// Samples until `stop`.
    pub(crate) async fn run(&self, stop: CancellationToken) {
        // A cluster that is removed goes to 0 instead of keeping its last value.
        let mut shown = BTreeSet::new();
        loop {
            shown.extend(self.clusters.now().all().iter().map(|cluster| cluster.name.clone()));
            self.sample_process(&shown);
            if let Some(Err(error)) = stop.run_until_cancelled(self.sample_jobs(&mut shown)).await {
                tracing::warn!(%error, "cannot count the jobs; their gauges keep the last values");
            }
            if stop.run_until_cancelled(tokio::time::sleep(SAMPLE_INTERVAL)).await.is_none() {
                return;
            }
        }
    }

    fn sample_process(&self, shown: &BTreeSet<ClusterName>) {
        let connections = self.store.connections();
        gauge!("tao_slurm_db_pool_connections", "state" => "used").set(connections.used);
        gauge!("tao_slurm_db_pool_connections", "state" => "idle").set(connections.idle);
        gauge!("tao_slurm_db_pool_connections_limit").set(connections.limit);
        gauge!("tao_slurm_worker_loops_stuck").set(float(self.pulse.not_ready().len()));
        for cluster in shown {
            show_links(cluster, &self.connections.links(cluster));
        }
    }

    async fn sample_jobs(&self, shown: &mut BTreeSet<ClusterName>) -> Result<(), persistence::StoreError> {
        let workload = self.store.workload().await?;
        shown.extend(workload.iter().map(|of| of.cluster.clone()));
        for cluster in shown.iter() {
            let (phases, overdue) = count_jobs(&workload, cluster);
            for (phase, jobs) in phases {
                let phase = <&str>::from(phase);
                gauge!("tao_slurm_jobs_in_phase", "cluster" => cluster.to_string(), "phase" => phase)
                    .set(float(jobs));
            }
            gauge!("tao_slurm_jobs_overdue_seconds", "cluster" => cluster.to_string())
                .set(overdue.as_seconds_f64());
        }
        Ok(())
    }
}

/// The jobs of a cluster by phase, and the longest time that one has waited for a worker. Includes the phases without
/// jobs, as 0.
fn count_jobs(workload: &[Workload], cluster: &ClusterName) -> (Vec<(Phase, u64)>, TimeDelta) {
    let found = || workload.iter().filter(|of| of.cluster == *cluster);
    let phases = Phase::iter().filter(|phase| !matches!(phase, Phase::Paused | Phase::Ended));
    let jobs = |phase| found().filter(|of| of.phase == phase).map(|of| of.jobs).sum();
    let overdue = found().filter_map(|of| of.overdue).max().unwrap_or_default();
    (phases.map(|phase| (phase, jobs(phase))).collect(), overdue)
}

/// All connections of this process to a cluster.
fn show_links(cluster: &ClusterName, links: &[LinkReport]) {
    let connects = links.iter().map(|link| link.connects_total).sum();
    counter!("tao_slurm_ssh_connects_total", "cluster" => cluster.to_string()).absolute(connects);
    let open: usize = links.iter().map(|link| link.sessions_open).sum();
    gauge!("tao_slurm_ssh_sessions", "cluster" => cluster.to_string()).set(float(open));
    let states = host_states(links);
    for (state, name) in HOST_STATES {
        let hosts = states.values().filter(|found| **found == state).count();
        gauge!("tao_slurm_ssh_hosts", "cluster" => cluster.to_string(), "state" => name).set(float(hosts));
    }
}

/// The state of each login host, from the first use that has tried it; the worker's comes first.
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

/// A gauge's value; counts beyond four billion do not occur.
fn float(count: impl TryInto<u32>) -> f64 {
    count.try_into().unwrap_or(u32::MAX).into()
}

#[cfg(test)]
mod tests {
    use api::{HostReport, LinkUse};

    use super::*;

    #[test]
    fn a_cluster_without_jobs_has_zeros_and_the_longest_wait_of_all_phases_counts() {
        let name = |text: &str| text.parse::<ClusterName>().unwrap();
        let of = |phase, jobs, seconds: Option<i64>| Workload {
            cluster: name("dgx"),
            phase,
            jobs,
            overdue: seconds.map(TimeDelta::seconds),
        };
        let workload =
            [of(Phase::Queued, 3, Some(7)), of(Phase::Finishing, 1, Some(70)), of(Phase::Running, 5, None)];
        let (phases, overdue) = count_jobs(&workload, &name("dgx"));
        assert!(phases.contains(&(Phase::Queued, 3)) && phases.contains(&(Phase::Running, 5)), "{phases:?}");
        assert_eq!(overdue, TimeDelta::seconds(70));
        let (phases, overdue) = count_jobs(&workload, &name("empty"));
        assert!(!phases.is_empty() && phases.iter().all(|(_, jobs)| *jobs == 0), "{phases:?}");
        assert_eq!(overdue, TimeDelta::zero());
    }

    #[test]
    fn a_host_has_the_state_of_the_first_use_that_tried_it() {
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
