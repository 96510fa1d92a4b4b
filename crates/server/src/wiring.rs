//! What joins the crates: connections to the clusters, logs over them, and what has to be alive.

use std::{collections::HashMap, pin::Pin, sync::Arc, time::Duration};

use api::{LogBytes, LogRequest, LogSource, LogUnavailable, Readiness};
use domain::{ClusterName, Graces};
use slurm::ReadLog;
use ssh::SshPool;
use worker::{ClusterTarget, Pace, SshLink, Worker, WorkerSettings};

use crate::config::{ClusterConfig, Settings};

/// A loop that has not come round for so long is stuck: a poll of a slow cluster is over well before.
const STUCK: Duration = Duration::from_mins(2);

/// The connections of this process, one pool a cluster.
#[derive(Debug, Clone)]
pub(crate) struct Links(HashMap<ClusterName, SshLink>);

impl Links {
    /// Starts the pools. They connect when they are first used.
    pub(crate) fn start(clusters: &[ClusterConfig]) -> Self {
        let start = |cluster: &ClusterConfig| {
            (cluster.cluster.name.clone(), SshLink::new(SshPool::start(cluster.ssh.clone())))
        };
        Self(clusters.iter().map(start).collect())
    }

    /// The clusters as the worker serves them.
    pub(crate) fn targets(&self, clusters: &[ClusterConfig]) -> Vec<ClusterTarget<SshLink>> {
        let target = |cluster: &ClusterConfig| {
            let link = self.0.get(&cluster.cluster.name)?.clone();
            let pace = Pace { min: cluster.poll_min, max: cluster.poll_max };
            Some(ClusterTarget { cluster: cluster.cluster.clone(), link, pace })
        };
        clusters.iter().filter_map(target).collect()
    }
}

impl LogSource for Links {
    fn read(
        &self,
        request: LogRequest,
    ) -> Pin<Box<dyn Future<Output = Result<Option<LogBytes>, LogUnavailable>> + Send + '_>> {
        Box::pin(async move {
            let Some(link) = self.0.get(&request.cluster) else {
                return Err(LogUnavailable {
                    detail: format!("the cluster {} is not configured", request.cluster),
                });
            };
            let command = ReadLog { paths: request.paths, from: request.from, max_bytes: request.max_bytes };
            match link.read_log(&command).await {
                Ok(chunk) => Ok(chunk.map(|chunk| LogBytes {
                    size: chunk.size,
                    start: chunk.start,
                    bytes: chunk.bytes,
                })),
                Err(error) => Err(LogUnavailable { detail: error.to_string() }),
            }
        })
    }
}

/// What the worker is told of the configuration.
pub(crate) fn worker_settings(settings: &Settings) -> WorkerSettings {
    let seconds =
        |duration: Duration| chrono::TimeDelta::from_std(duration).unwrap_or(chrono::TimeDelta::MAX);
    WorkerSettings {
        lease: settings.worker.lease,
        batch: settings.worker.batch_size,
        graces: Graces {
            missing: seconds(settings.worker.missing_grace),
            last_word: seconds(settings.worker.last_word_grace),
        },
    }
}

/// Whether this process's worker comes round; without one there is nothing to wait for.
pub(crate) struct WorkerPulse(pub(crate) Option<Arc<Worker<SshLink>>>);

impl Readiness for WorkerPulse {
    fn not_ready(&self) -> Vec<String> {
        let age = self.0.as_ref().map(|worker| worker.heartbeat_age()).filter(|age| *age > STUCK);
        age.map(|age| format!("worker (no loop came round for {} s)", age.as_secs())).into_iter().collect()
    }
}
