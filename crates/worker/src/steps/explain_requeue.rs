//! Explains requeues of jobs, and excludes the node that failed.

use std::collections::{BTreeSet, HashMap};

use std::time::Duration;

use chrono::TimeDelta;
use domain::{ExplainedRequeue, Job, Transition, UnhealthyNode, explain_requeue, with_own_exclusions};
use persistence::{Lease, WorkStore};
use remote::{AttemptKey, Exclude, NodeHealth, Requeued};
use slurm::{NodeName, SlurmJobId, node_list};

use crate::{
    Result,
    cluster_runtime::Runtime,
    link::cluster_link::ClusterLink,
    steps::record::{done, in_slurm, warn_of_each},
    worker::Worker,
};

/// Accounting lags by seconds, and Slurm holds a job that lost its node back for longer than that. Asked less and less
/// often, and not for ever: a runtime may keep no accounting.
const TRY_AGAIN_FIRST: TimeDelta = TimeDelta::seconds(2);
const TRY_AGAIN_LAST: TimeDelta = TimeDelta::minutes(1);
const GIVE_UP: TimeDelta = TimeDelta::minutes(10);

/// A job with nodes to exclude.
struct Exclusion {
    /// The step that stores the result.
    step: usize,
    id: SlurmJobId,
    key: AttemptKey,
    nodes: Vec<NodeName>,
}

impl<L: ClusterLink, S: WorkStore> Worker<L, S> {
    pub(crate) async fn explain_requeues(
        &self,
        runtime: &Runtime<L>,
        lease: &Lease,
        jobs: Vec<Job>,
    ) -> Result {
        let asked = jobs.iter().filter_map(in_slurm);
        let runs = match runtime.target.link.call(&Requeued { jobs: asked.collect() }).await {
            Ok(runs) => runs,
            Err(error) => {
                warn_of_each(&jobs, &error, "the reason of a requeue is not known yet");
                HashMap::new()
            }
        };
        let nodes = runs.values().flat_map(|run| node_list::expand(&run.nodes));
        let sick = self.sick_nodes(runtime, nodes.filter_map(|name| name.parse().ok()).collect()).await;
        let spare = self.spare_nodes(runtime, &jobs.iter().collect::<Vec<_>>()).await;
        let now = self.clock.now();
        let mut steps = Vec::with_capacity(jobs.len());
        let mut exclusions = Vec::new();
        let (mut unknown, mut wait) = (Vec::new(), TRY_AGAIN_FIRST);
        for job in jobs {
            let id = job.attempt.as_ref().and_then(|attempt| attempt.slurm_id);
            let Some((id, run)) = id.and_then(|id| Some((id, runs.get(&id)?))) else {
                // A job is not written while its requeue is unexplained, so this is the time since the requeue.
                let since = now - job.last_modified;
                if since >= GIVE_UP {
                    steps.push(done(job.without_explanation(), None));
                } else {
                    wait = wait.max(since.min(TRY_AGAIN_LAST));
                    unknown.push(job);
                }
                continue;
            };
            let (terms, spare) = (self.graces(runtime).retry, spare.get(&job.id).copied());
            let ExplainedRequeue { job, exclude } = explain_requeue(&job, run, &sick, &terms, spare, now);
            if let (Some(exclude), Some(attempt)) = (exclude, &job.attempt) {
                exclusions.push(Exclusion {
                    step: steps.len(),
                    id,
                    key: attempt.key(job.id),
                    nodes: exclude,
                });
            }
            steps.push(done(job, None));
        }
        self.exclude(runtime, &mut steps, exclusions).await;
        let stored = self.record(lease, &steps).await?;
        // A poll has changed these jobs meanwhile; the step is retried with the new state.
        let overtaken = steps.into_iter().map(|step| step.job).filter(|job| !stored.contains(&job.id));
        self.store.put_off(lease, &overtaken.collect::<Vec<_>>(), Some(Duration::ZERO)).await?;
        self.store.put_off(lease, &unknown, wait.to_std().ok()).await
    }

    /// Excludes nodes in Slurm, and stores accepted exclusions in the attempts. A refusal has no other effect.
    async fn exclude(&self, runtime: &Runtime<L>, steps: &mut [Transition], exclusions: Vec<Exclusion>) {
        if exclusions.is_empty() {
            return;
        }
        let job = |exclusion: &Exclusion| {
            let nodes = with_own_exclusions(&steps[exclusion.step].job, &exclusion.nodes);
            (exclusion.id, exclusion.key.clone(), nodes)
        };
        let command = Exclude { jobs: exclusions.iter().map(job).collect() };
        match runtime.target.link.call(&command).await {
            Ok(answer) => {
                for (Exclusion { step, nodes, .. }, failure) in exclusions.into_iter().zip(answer.failed) {
                    let job = &mut steps[step].job;
                    if let Some(failure) = failure {
                        tracing::warn!(job.id = %job.id, error = %failure, "Slurm refused to exclude the failed node");
                    } else if let Some(attempt) = &mut job.attempt {
                        attempt.excluded = nodes;
                    }
                }
            }
            Err(error) => {
                let jobs: Vec<&Job> = exclusions.iter().map(|exclusion| &steps[exclusion.step].job).collect();
                warn_of_each(jobs, &error, "the failed node could not be excluded");
            }
        }
    }

    /// The nodes that are down or drained for a fault; none if that is not known.
    pub(crate) async fn sick_nodes(&self, runtime: &Runtime<L>, nodes: Vec<NodeName>) -> Vec<UnhealthyNode> {
        let nodes: Vec<NodeName> = nodes.into_iter().collect::<BTreeSet<_>>().into_iter().collect();
        if nodes.is_empty() {
            return Vec::new();
        }
        match runtime.target.link.call(&NodeHealth { nodes }).await {
            Ok(answer) => {
                let sick = answer.sick.unwrap_or_default().into_iter();
                sick.map(|(name, state)| UnhealthyNode { name, state }).collect()
            }
            Err(error) => {
                tracing::warn!(cluster.name = %runtime.target.cluster.name, error = %error, "the health of nodes could not be read");
                Vec::new()
            }
        }
    }
}
