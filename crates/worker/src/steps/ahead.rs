//! Closes attempts that were queued ahead and are not needed.

use std::collections::HashMap;

use domain::{Job, JobId, Transition, cleanup_is_retried};
use persistence::WorkStore;
use remote::Cancel;

use crate::{
    cluster_runtime::Runtime,
    link::cluster_link::ClusterLink,
    steps::{
        pending_cleanup::{CleanupBlocker, TRY_AGAIN},
        record::{done, warn_of_each},
    },
    worker::Worker,
};

impl<L: ClusterLink, S: WorkStore> Worker<L, S> {
    /// The steps, after the attempts are closed that were queued ahead of jobs which end, or go on in another way. A job whose
    /// next attempt has begun already goes on with that. `before`: the jobs as they were.
    pub(super) async fn close_ahead(
        &self,
        runtime: &Runtime<L>,
        before: &[Job],
        steps: Vec<Transition>,
    ) -> Vec<Transition> {
        let closing: Vec<&Job> =
            steps.iter().map(|step| &step.job).filter(|job| job.closes_ahead()).collect();
        if closing.is_empty() {
            return steps;
        }
        let failed = "the attempt that was queued ahead could not be closed; retrying";
        let blocked = self.clear_away(runtime, &closing, Job::state_ahead, failed).await;
        let now = self.clock.now();
        let before: HashMap<JobId, &Job> = before.iter().map(|job| (job.id, job)).collect();
        let step = |step: Transition| match (blocked.get(&step.job.id), before.get(&step.job.id)) {
            (Some(CleanupBlocker::Held(id)), Some(before)) => {
                let failures = step.job.failures;
                done(Job { failures, ..before.gone_on(*id, now) }, Some(now))
            }
            (Some(CleanupBlocker::PendingCleanup(_)), Some(before))
                if cleanup_is_retried(before.finishing_since, now) =>
            {
                done(before.closing_ahead(), Some(now + TRY_AGAIN))
            }
            _ => step,
        };
        steps.into_iter().map(step).collect()
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
