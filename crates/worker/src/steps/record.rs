//! The results of steps: stored under the lease, and in the log.

use std::{collections::HashSet, fmt};

use domain::{Job, JobId, Timestamp, Transition};
use persistence::{Lease, WorkStore};
use remote::AttemptKey;
use slurm::SlurmJobId;

use crate::{Result, link::cluster_link::ClusterLink, worker::Worker};

impl<L: ClusterLink, S: WorkStore> Worker<L, S> {
    /// Stores results and logs each job.
    pub(crate) async fn record(&self, lease: &Lease, steps: &[Transition]) -> Result<HashSet<JobId>> {
        let stored = self.store.record_steps(lease, steps, self.clock.now()).await?;
        for Transition { job, .. } in steps {
            let attempt = job.attempt.as_ref().map_or(0, |attempt| attempt.no.get());
            let slurm_id = job.attempt.as_ref().and_then(|attempt| attempt.slurm_id).map(SlurmJobId::get);
            if stored.contains(&job.id) {
                tracing::info!(
                    job.id = %job.id, attempt, slurm.job_id = slurm_id, job.status = %job.status,
                    job.phase = %job.phase, "{}", first_line(&job.message)
                );
            } else {
                tracing::warn!(job.id = %job.id, attempt, "the lease was lost; the result of the step is dropped");
            }
            if job.status.is_final() && stored.contains(&job.id) {
                metrics::counter!(
                    "tao_slurm_jobs_finished_total", "cluster" => job.cluster.to_string(), "outcome" => job.status.to_string()
                )
                .increment(1);
            }
        }
        Ok(stored)
    }
}

/// Carries out a step, unless nothing needs it.
pub(crate) async fn unless_empty<T, F: Future<Output = Result>>(
    due: Vec<T>,
    step: impl FnOnce(Vec<T>) -> F,
) -> Result {
    if due.is_empty() { Ok(()) } else { step(due).await }
}

pub(crate) fn done(job: Job, due_at: Option<Timestamp>) -> Transition {
    Transition { job, due_at }
}

/// The Slurm job of the newest attempt, if its id is known.
pub(crate) fn in_slurm(job: &Job) -> Option<(SlurmJobId, AttemptKey)> {
    let attempt = job.attempt.as_ref()?;
    Some((attempt.slurm_id?, attempt.key(job.id)))
}

/// Logs a failed command for each of its jobs.
pub(crate) fn warn_of_each<'a>(jobs: impl IntoIterator<Item = &'a Job>, why: &dyn fmt::Display, what: &str) {
    for job in jobs {
        let attempt = job.attempt.as_ref().map_or(0, |attempt| attempt.no.get());
        tracing::warn!(job.id = %job.id, attempt, error = %why, "{what}");
    }
}

/// Only the first line of a message: log lines of the job may follow it.
fn first_line(message: &str) -> &str {
    message.lines().next().unwrap_or_default()
}
