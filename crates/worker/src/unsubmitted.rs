//! Jobs that end without ever having run: what was staged for them goes first.

use std::collections::HashMap;

use chrono::TimeDelta;
use domain::{Job, JobId, JobPaths, Kept, Phase, Timestamp};
use persistence::{Lease, StepRecord, StoreError, WorkStore};
use slurm::{Remove, StagedSecret};

use crate::{
    link::ClusterLink,
    steps::{done, warn_of_each},
    worker::{Site, Worker},
};

/// After a cluster that could not be asked to remove files.
const TRY_AGAIN: TimeDelta = TimeDelta::seconds(10);

/// A job after a step that may have ended it, and as it was before.
#[derive(Debug)]
pub(crate) struct Unsubmitted {
    before: Job,
    step: StepRecord,
}

impl Unsubmitted {
    pub(crate) fn new(before: &Job, step: StepRecord) -> Self {
        Self { before: before.clone(), step }
    }

    /// The job after the step.
    pub(crate) fn job(&self) -> &Job {
        &self.step.job
    }

    /// The step, if nothing was removed that had to be: the job stays as it was, and ends when the cluster has removed
    /// it, or after a day.
    fn unless_kept(self, kept: Option<Kept>, now: Timestamp) -> StepRecord {
        let Some(kept) = kept else { return self.step };
        if let Some(job) = self.step.job.not_ended(&self.before, kept, now) {
            return done(job, Some(now + TRY_AGAIN));
        }
        let id = self.before.id;
        tracing::warn!(job.id = %id, "files with secrets could not be removed for a day; the job ends without");
        self.step
    }
}

impl<L: ClusterLink, S: WorkStore> Worker<L, S> {
    /// Records steps, of which some end or pause jobs of which files may have been staged. Those with secrets are removed
    /// before: an ended job has none left, and nobody looks at it again.
    pub(crate) async fn record_unsubmitted(
        &self,
        site: &Site<L>,
        lease: &Lease,
        steps: Vec<Unsubmitted>,
    ) -> Result<(), StoreError> {
        let kept = self.remove_secrets(site, &steps).await;
        let now = self.clock.now();
        let steps: Vec<_> = steps
            .into_iter()
            .map(|one| {
                let kept = kept.get(&one.before.id).copied();
                one.unless_kept(kept, now)
            })
            .collect();
        self.record(lease, &steps).await?;
        Ok(())
    }

    /// Removes the files with secrets of jobs that are over, and returns those of whom some are still there.
    async fn remove_secrets(&self, site: &Site<L>, steps: &[Unsubmitted]) -> HashMap<JobId, Kept> {
        let files = || {
            let jobs = steps.iter().map(|one| &one.step.job);
            jobs.flat_map(|job| staged_secrets(job).into_iter().map(move |file| (job, file)))
        };
        let command = Remove { files: files().map(|(_, file)| file).collect() };
        if command.files.is_empty() {
            return HashMap::new();
        }
        match site.target.link.remove(&command).await {
            Ok(answer) => {
                let places = files().enumerate().filter(|(place, _)| answer.kept.contains(place));
                places.map(|(_, (job, _))| (job.id, Kept::NotRemoved)).collect()
            }
            Err(error) => {
                let jobs = steps.iter().map(|one| &one.step.job);
                warn_of_each(jobs, &error, "files with secrets could not be removed; trying again");
                files().map(|(job, _)| (job.id, Kept::Unanswered)).collect()
            }
        }
    }
}

/// The files with secrets of a job that is over, if anything was ever staged for it.
fn staged_secrets(job: &Job) -> Vec<StagedSecret> {
    let Some(attempt) = job.attempt.as_ref().filter(|_| job.status.is_final() || job.phase == Phase::Paused)
    else {
        return Vec::new();
    };
    let Ok(paths) = JobPaths::new(&attempt.job_dir, job.id) else { return Vec::new() };
    let Ok(state_dir) = paths.state(attempt) else { return Vec::new() };
    let file = |path| StagedSecret { state_dir: state_dir.clone(), path };
    paths.secret_files().into_iter().map(file).collect()
}
