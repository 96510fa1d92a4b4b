//! Cancels jobs in Slurm. Polls confirm the cancellation; until then it is repeated.

use std::time::Duration;

use domain::{Job, Urgency};
use persistence::{Lease, WorkStore};
use remote::{Cancel, RemoteCommand as _};

use crate::{
    Result,
    cluster_runtime::Runtime,
    link::cluster_link::{ClusterLink, LinkError},
    steps::record::{in_slurm, warn_of_each},
    worker::Worker,
};

/// Slurm gives a job its `KillWait` (30 s by default) to end. An earlier repetition would be useless.
const REPEAT_AFTER: Duration = Duration::from_secs(45);
/// So many cancellations wait for each other when the RPC budget allows few, because each command also asks for the queue.
const TOGETHER: u32 = 10;
/// After a cancellation that failed.
const TRY_AGAIN: Duration = Duration::from_secs(5);

impl<L: ClusterLink, S: WorkStore> Worker<L, S> {
    pub(crate) async fn cancel(&self, runtime: &Runtime<L>, lease: &Lease, mut jobs: Vec<Job>) -> Result {
        if let Some(meter) = runtime.target.link.meter().await? {
            let of_one = of_one(&jobs);
            let now = meter.allows(Urgency::Cancel).saturating_sub(of_one).saturating_add(1);
            let later = jobs.split_off(jobs.len().min(usize::try_from(now).unwrap_or(usize::MAX)));
            let together = u32::try_from(later.len()).unwrap_or(u32::MAX).min(TOGETHER);
            let wait = meter.budget.refill_time(of_one.saturating_add(together));
            self.store.put_off(lease, &later, Some(wait)).await?;
        }
        let command = cancellation(&jobs);
        let failed = match runtime.target.link.call(&command).await {
            Ok(answer) => answer.refused.map(|failure| ("Slurm refused a cancellation", failure.excerpt)),
            Err(LinkError::OverBudget { wait }) => return self.store.put_off(lease, &jobs, Some(wait)).await,
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
            // A poll confirms it, and the budget may allow few of them.
            REPEAT_AFTER.max(runtime.budget_pace() * 2)
        };
        self.store.put_off(lease, &jobs, Some(again_in)).await?;
        self.poll_soon(runtime).await
    }
}

/// The requests that cancel one of the jobs.
fn of_one(jobs: &[Job]) -> u32 {
    cancellation(&jobs[..jobs.len().min(1)]).rpcs()
}

/// Attempts that were queued ahead go first: Slurm would start them.
fn cancellation(jobs: &[Job]) -> Cancel {
    let (known, ahead) = (jobs.iter().filter_map(in_slurm), jobs.iter().filter_map(Job::key_ahead));
    Cancel { jobs: known.collect(), names: ahead.collect(), ..Cancel::default() }
}
