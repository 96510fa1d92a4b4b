//! Jobs that end without ever having run: what was staged for them goes first.

use chrono::TimeDelta;
use domain::{Job, JobPaths, Phase};
use persistence::{Lease, StepRecord, StoreError, WorkStore};
use slurm::{RemotePath, Remove};

use crate::{
    link::ClusterLink,
    steps::{done, warn_of_each},
    worker::{Site, Worker},
};

/// After a cluster that could not be asked to remove files.
const TRY_AGAIN: TimeDelta = TimeDelta::seconds(10);

impl<L: ClusterLink, S: WorkStore> Worker<L, S> {
    /// Records steps, of which some end jobs that never ran. Their files with secrets are removed before: an ended
    /// job has none left, and nobody looks at it again.
    pub(crate) async fn record_unsubmitted(
        &self,
        site: &Site<L>,
        lease: &Lease,
        steps: Vec<StepRecord>,
    ) -> Result<(), StoreError> {
        let paths: Vec<RemotePath> = steps.iter().flat_map(|step| staged_secrets(&step.job)).collect();
        let removed = paths.is_empty() || self.remove(site, &steps, paths).await;
        let now = self.clock.now();
        let keep = |step: StepRecord| {
            if removed || staged_secrets(&step.job).is_empty() {
                return step;
            }
            // It stays as it was, and ends when the cluster can be reached.
            done(not_yet(&step.job), Some(now + TRY_AGAIN))
        };
        let steps: Vec<_> = steps.into_iter().map(keep).collect();
        self.record(lease, &steps).await?;
        Ok(())
    }

    async fn remove(&self, site: &Site<L>, steps: &[StepRecord], paths: Vec<RemotePath>) -> bool {
        match site.target.link.remove(&Remove { paths }).await {
            Ok(answer) => answer.removed,
            Err(error) => {
                let jobs = steps.iter().map(|step| &step.job);
                warn_of_each(jobs, &error, "files with secrets could not be removed; trying again");
                false
            }
        }
    }
}

/// The files with secrets of a job that ended, if anything was ever staged for it.
fn staged_secrets(job: &Job) -> Vec<RemotePath> {
    match &job.attempt {
        Some(attempt) if job.status.is_final() || job.phase == Phase::Paused => {
            JobPaths::new(&attempt.job_dir, job.id).map_or_else(|_| Vec::new(), |paths| paths.secret_files())
        }
        _ => Vec::new(),
    }
}

fn not_yet(ended: &Job) -> Job {
    let mut job = ended.not_ended();
    "The job is over; waiting for the cluster to remove what was staged for it.".clone_into(&mut job.message);
    job
}
