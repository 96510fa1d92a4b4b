//! Relaxes the excluded nodes of jobs in Slurm's queue.

use std::time::Duration;

use domain::{Job, with_own_exclusions};
use persistence::{Lease, WorkStore};
use remote::Exclude;

use crate::{
    Result,
    cluster_runtime::Runtime,
    link::cluster_link::ClusterLink,
    steps::record::{done, in_slurm, warn_of_each},
    worker::Worker,
};

/// After a refusal, or a command without an answer.
const TRY_AGAIN: Duration = Duration::from_mins(1);

impl<L: ClusterLink, S: WorkStore> Worker<L, S> {
    pub(crate) async fn relax_exclusions(
        &self,
        runtime: &Runtime<L>,
        lease: &Lease,
        jobs: Vec<Job>,
    ) -> Result {
        let (terms, now) = (self.graces(runtime).retry, self.clock.now());
        let (mut waiting, mut relaxed, mut command) = (Vec::new(), Vec::new(), Exclude::default());
        let mut left = Vec::new();
        for job in jobs {
            match (in_slurm(&job), domain::relax_exclusions(&job, &terms, now)) {
                (Some((id, key)), Some(exclusions)) => {
                    command.jobs.push((id, key, with_own_exclusions(&job, &exclusions.keep)));
                    relaxed.push(exclusions);
                    waiting.push(job);
                }
                _ => left.push(job),
            }
        }
        self.store.put_off(lease, &left, None).await?;
        if waiting.is_empty() {
            return Ok(());
        }
        let failed = match runtime.target.link.call(&command).await {
            Ok(answer) => answer.failed,
            Err(error) => {
                warn_of_each(&waiting, &error, "the excluded nodes of the job could not be changed");
                return self.store.put_off(lease, &waiting, Some(TRY_AGAIN)).await;
            }
        };
        let (mut steps, mut refused) = (Vec::new(), Vec::new());
        for ((job, exclusions), failure) in waiting.into_iter().zip(relaxed).zip(failed) {
            match failure {
                None => steps.push(done(job.with_relaxed_exclusions(&exclusions), None)),
                Some(failure) => {
                    tracing::warn!(job.id = %job.id, error = %failure, "Slurm refused to change the excluded nodes of the job");
                    refused.push(job);
                }
            }
        }
        let stored = self.record(lease, &steps).await?;
        // A poll has changed these jobs meanwhile; the step is retried with the new state.
        let overtaken = steps.into_iter().map(|step| step.job).filter(|job| !stored.contains(&job.id));
        self.store.put_off(lease, &overtaken.collect::<Vec<_>>(), Some(Duration::ZERO)).await?;
        self.store.put_off(lease, &refused, Some(TRY_AGAIN)).await
    }
}
