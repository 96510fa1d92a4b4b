//! The worker's settings, and whether its loops are alive.

use std::{sync::Arc, time::Duration};

use api::Readiness;
use domain::{Graces, RetryTerms};
use worker::{Metered, SshLink, Worker, WorkerSettings};

use crate::config::Settings;

/// A loop without progress for this long is stuck: one round takes a few remote commands, and each of them has a shorter
/// deadline.
const STUCK: Duration = Duration::from_mins(5);

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

/// Reports stuck loops of this process's worker; none without a worker.
pub(crate) struct WorkerPulse(pub(crate) Option<Arc<Worker<Metered<SshLink>>>>);

impl Readiness for WorkerPulse {
    fn not_ready(&self) -> Vec<String> {
        let stuck_loops = self.0.as_ref().map(|worker| worker.silent_loops(STUCK));
        stuck_loops.into_iter().flatten().map(|name| stuck(&name)).collect()
    }
}

fn stuck(name: &str) -> String {
    format!("worker loop \"{name}\" (no progress for {} min)", STUCK.as_secs() / 60)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stuck_loop_is_named_with_the_time_without_progress() {
        assert_eq!(stuck("dgx poll"), "worker loop \"dgx poll\" (no progress for 5 min)");
    }

    #[test]
    fn a_process_without_a_worker_has_no_stuck_loops() {
        assert_eq!(WorkerPulse(None).not_ready(), Vec::<String>::new());
    }
}
