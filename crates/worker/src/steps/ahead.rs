//! Closes attempts that were queued ahead and are not needed.

use std::collections::HashMap;

use chrono::TimeDelta;
use domain::{Job, JobId, cleanup_is_retried};
use persistence::{StepRecord, WorkStore};
use remote::{Cancel, Remove, StagedSecret};
use slurm::{RemotePath, SlurmJobId};

use crate::{
    cluster_runtime::Runtime,
    link::cluster_link::ClusterLink,
    steps::{
        pending_cleanup::private_files,
        record::{done, warn_of_each},
    },
    worker::Worker,
};

/// After an attempt that could not be closed.
const TRY_AGAIN: TimeDelta = TimeDelta::seconds(10);

/// Why a step cannot be stored.
enum Blocker {
    /// The attempt or its files with secrets may still be there.
    NotClosed,
    /// Its script has begun to run.
    Begun(SlurmJobId),
}

impl<L: ClusterLink, S: WorkStore> Worker<L, S> {
    /// The steps, after the attempts are closed that were queued ahead of jobs which end, or go on in another way. A job whose
    /// next attempt has begun already goes on with that. `before`: the jobs as they were.
    pub(super) async fn close_ahead(
        &self,
        runtime: &Runtime<L>,
        before: &[Job],
        steps: Vec<StepRecord>,
    ) -> Vec<StepRecord> {
        let closing: Vec<&Job> =
            steps.iter().map(|step| &step.job).filter(|job| job.closes_ahead()).collect();
        if closing.is_empty() {
            return steps;
        }
        let blocked = self.close(runtime, &closing).await;
        let now = self.clock.now();
        let before: HashMap<JobId, &Job> = before.iter().map(|job| (job.id, job)).collect();
        let step = |step: StepRecord| match (blocked.get(&step.job.id), before.get(&step.job.id)) {
            (Some(Blocker::Begun(id)), Some(before)) => {
                let failures = step.job.failures;
                done(Job { failures, ..before.gone_on(*id, now) }, Some(now))
            }
            (Some(Blocker::NotClosed), Some(before)) if cleanup_is_retried(before.finishing_since, now) => {
                done(before.closing_ahead(), Some(now + TRY_AGAIN))
            }
            _ => step,
        };
        steps.into_iter().map(step).collect()
    }

    /// Returns the jobs whose next attempt is not closed.
    async fn close(&self, runtime: &Runtime<L>, jobs: &[&Job]) -> HashMap<JobId, Blocker> {
        let dirs: Vec<(JobId, RemotePath)> =
            jobs.iter().filter_map(|job| Some((job.id, job.state_ahead()?))).collect();
        let files: Vec<(JobId, StagedSecret)> =
            jobs.iter().flat_map(|job| private_files(job).into_iter().map(|file| (job.id, file))).collect();
        let command = Remove {
            close: dirs.iter().map(|(_, dir)| dir.clone()).collect(),
            files: files.iter().map(|(_, file)| file.clone()).collect(),
        };
        let removed = match runtime.target.link.call(&command).await {
            Ok(removed) => removed,
            Err(error) => {
                warn_of_each(
                    jobs.iter().copied(),
                    &error,
                    "the attempt that was queued ahead could not be closed; retrying",
                );
                return dirs.into_iter().map(|(job, _)| (job, Blocker::NotClosed)).collect();
            }
        };
        let kept = removed.kept.iter().filter_map(|place| files.get(*place));
        let held = removed.held.iter().filter_map(|(place, id)| Some((dirs.get(*place)?.0, *id)));
        // A held attempt keeps its files as well.
        let blocked: HashMap<JobId, Blocker> = kept
            .map(|(job, _)| (*job, Blocker::NotClosed))
            .chain(held.map(|(job, id)| (job, Blocker::Begun(id))))
            .collect();
        let closed = jobs.iter().filter(|job| !blocked.contains_key(&job.id));
        self.cancel_ahead(runtime, closed.copied().collect()).await;
        blocked
    }

    /// Cancels attempts that are closed. If Slurm has started one meanwhile, its script stops. A poll cancels those that are left.
    pub(super) async fn cancel_ahead(&self, runtime: &Runtime<L>, jobs: Vec<&Job>) {
        let names: Vec<_> = jobs.iter().filter_map(|job| job.key_ahead()).collect();
        if !names.is_empty()
            && let Err(error) = runtime.target.link.call(&Cancel { names, ..Cancel::default() }).await
        {
            warn_of_each(jobs, &error, "the attempt that was queued ahead could not be canceled");
        }
    }
}
