//! Jobs in Slurm's queue that are kept away from nodes which they may use again.

use std::time::Duration;

use domain::{Job, relax_exclusions};
use persistence::{Lease, WorkStore};
use remote::Exclude;

use crate::{
    Result,
    cluster_runtime::Runtime,
    link::cluster_link::ClusterLink,
    steps::record::{done, in_slurm, warn_of_each},
    worker::Worker,
};

/// After a refusal, or an answer that did not come.
const TRY_AGAIN: Duration = Duration::from_mins(1);

impl<L: ClusterLink, S: WorkStore> Worker<L, S> {
    pub(crate) async fn relieve(&self, runtime: &Runtime<L>, lease: &Lease, jobs: Vec<Job>) -> Result {
        let (terms, now) = (self.graces(runtime).retry, self.clock.now());
        let (mut waiting, mut reliefs, mut command) = (Vec::new(), Vec::new(), Exclude::default());
        let mut left = Vec::new();
        for job in jobs {
            match (in_slurm(&job), relax_exclusions(&job, &terms, now)) {
                (Some((id, key)), Some(relief)) => {
                    command.jobs.push((id, key, relief.keep.clone()));
                    reliefs.push(relief);
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
                warn_of_each(&waiting, &error, "the job could not be allowed on its nodes again");
                return self.store.put_off(lease, &waiting, Some(TRY_AGAIN)).await;
            }
        };
        let (mut steps, mut refused) = (Vec::new(), Vec::new());
        for ((job, relief), failure) in waiting.into_iter().zip(reliefs).zip(failed) {
            match failure {
                None => steps.push(done(job.with_relaxed_exclusions(&relief), None)),
                Some(failure) => {
                    tracing::warn!(job.id = %job.id, error = %failure, "Slurm does not allow the job on its nodes again");
                    refused.push(job);
                }
            }
        }
        let stored = self.record(lease, &steps).await?;
        // What a poll has changed meanwhile is looked at again as it is now.
        let overtaken = steps.into_iter().map(|step| step.job).filter(|job| !stored.contains(&job.id));
        self.store.put_off(lease, &overtaken.collect::<Vec<_>>(), Some(Duration::ZERO)).await?;
        self.store.put_off(lease, &refused, Some(TRY_AGAIN)).await
    }
}
