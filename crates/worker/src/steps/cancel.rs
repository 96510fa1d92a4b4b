//! Cancels jobs in Slurm. Polls confirm the cancellation; until then it is repeated.

use std::time::Duration;

use domain::Job;
use persistence::{Lease, WorkStore};
use remote::Cancel;

use crate::{
    Result,
    cluster_runtime::Runtime,
    link::cluster_link::ClusterLink,
    steps::record::{in_slurm, warn_of_each},
    worker::Worker,
};

/// Slurm gives a job its `KillWait` (30 s by default) to end. An earlier repetition would be useless.
const REPEAT_AFTER: Duration = Duration::from_secs(45);
/// After a cancellation that failed.
const TRY_AGAIN: Duration = Duration::from_secs(5);

impl<L: ClusterLink, S: WorkStore> Worker<L, S> {
    pub(crate) async fn cancel(&self, runtime: &Runtime<L>, lease: &Lease, jobs: Vec<Job>) -> Result {
        let known = jobs.iter().filter_map(in_slurm);
        let command = Cancel { jobs: known.collect(), names: Vec::new() };
        let again_in = match runtime.target.link.call(&command).await {
            Ok(answer) => match answer.refused {
                None => REPEAT_AFTER,
                Some(failure) => {
                    warn_of_each(&jobs, &failure.excerpt, "Slurm refused a cancellation");
                    TRY_AGAIN
                }
            },
            Err(error) => {
                warn_of_each(&jobs, &error, "the cancellation failed");
                TRY_AGAIN
            }
        };
        for job in &jobs {
            let attempt = job.attempt.as_ref().map_or(0, |attempt| attempt.no.get());
            tracing::info!(job.id = %job.id, attempt, "cancellation sent");
        }
        self.store.put_off(lease, &jobs, Some(again_in)).await?;
        self.poll_soon(runtime).await
    }
}
