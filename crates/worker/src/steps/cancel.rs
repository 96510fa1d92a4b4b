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
        let command = Cancel { jobs: known.collect(), ..Cancel::default() };
        let failed = match runtime.target.link.call(&command).await {
            Ok(answer) => answer.refused.map(|failure| ("Slurm refused a cancellation", failure.excerpt)),
            Err(error) => Some(("the cancellation failed", error.to_string())),
        };
        let again_in = if let Some((what, why)) = &failed {
            warn_of_each(&jobs, why, what);
            TRY_AGAIN
        } else {
            for job in &jobs {
                let attempt = job.attempt.as_ref().map_or(0, |attempt| attempt.no.get());
                tracing::info!(job.id = %job.id, attempt, "cancellation sent");
            }
            REPEAT_AFTER
        };
        self.store.put_off(lease, &jobs, Some(again_in)).await?;
        self.poll_soon(runtime).await
    }
}
