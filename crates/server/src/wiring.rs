//! What joins the worker to the rest: its clusters, its settings, and whether it is alive.

use std::{sync::Arc, time::Duration};

use api::Readiness;
use domain::{Graces, RetryTerms};
use ssh::SshPool;
use worker::{ClusterTarget, Pace, SshLink, Timeline, Worker, WorkerSettings};

use crate::config::{ClusterConfig, Settings};

/// A loop that has not come round for so long is stuck: one round waits for a few remote commands, and each of
/// them is over, answered or not, well before.
const STUCK: Duration = Duration::from_mins(5);

/// The clusters as the worker serves them, each with connections of its own. They connect when first used.
pub(crate) fn targets(clusters: &[ClusterConfig], timeline: &Timeline) -> Vec<ClusterTarget<SshLink>> {
    clusters.iter().map(|cluster| target(cluster, None, timeline)).collect()
}

/// One of them; of one that is kept in the database with its incarnation.
pub(crate) fn target(
    cluster: &ClusterConfig,
    incarnation: Option<i64>,
    timeline: &Timeline,
) -> ClusterTarget<SshLink> {
    ClusterTarget {
        cluster: cluster.cluster.clone(),
        incarnation,
        link: SshLink::new(cluster.cluster.name.clone(), SshPool::start(cluster.ssh.clone()))
            .noting(timeline.clone()),
        pace: Pace { min: cluster.poll_min, max: cluster.poll_max },
    }
}

/// What the worker is told of the configuration.
pub(crate) fn worker_settings(settings: &Settings) -> WorkerSettings {
    let seconds =
        |duration: Duration| chrono::TimeDelta::from_std(duration).unwrap_or(chrono::TimeDelta::MAX);
    WorkerSettings {
        lease: settings.worker.lease,
        partitions_every: settings.worker.partitions_every,
        batch: settings.worker.batch_size,
        graces: Graces {
            missing: seconds(settings.worker.missing_grace),
            finish: seconds(settings.worker.finish_grace),
            release: seconds(settings.worker.release_grace),
            retry: RetryTerms {
                first_wait: seconds(settings.worker.retry_wait),
                longest_wait: seconds(settings.worker.retry_wait_max),
                ..RetryTerms::default()
            },
        },
    }
}

/// Whether each loop of this process's worker comes round; without a worker there is nothing to wait for.
pub(crate) struct WorkerPulse(pub(crate) Option<Arc<Worker<SshLink>>>);

impl Readiness for WorkerPulse {
    fn not_ready(&self) -> Vec<String> {
        let silent = self.0.as_ref().map(|worker| worker.silent_loops(STUCK));
        silent.into_iter().flatten().map(|name| stuck(&name)).collect()
    }
}

fn stuck(name: &str) -> String {
    format!("worker loop \"{name}\" (has not come round for {} min)", STUCK.as_secs() / 60)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stuck_loop_is_named_with_how_long_it_has_been_silent() {
        assert_eq!(stuck("dgx poll"), "worker loop \"dgx poll\" (has not come round for 5 min)");
    }

    #[test]
    fn a_process_without_a_worker_waits_for_no_loop() {
        assert_eq!(WorkerPulse(None).not_ready(), Vec::<String>::new());
    }
}
