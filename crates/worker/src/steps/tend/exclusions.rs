//! Relaxes the excluded nodes of arrays in Slurm's queue.

use domain::{AttemptNo, DesiredState, Job, JobId, Run, relax_attempt, with_own_exclusions};
use persistence::WorkStore;
use remote::Exclude;

use super::unwanted::Looks;
use crate::{
    cluster_runtime::Runtime,
    link::cluster_link::ClusterLink,
    steps::{conclude::TRY_AGAIN, record::warn_of_each},
    worker::Worker,
};

impl<L: ClusterLink, S: WorkStore> Worker<L, S> {
    /// Attempts whose tasks find no place, or whose exclusions have expired, may use the nodes again.
    pub(super) async fn relax_attempts(
        &self,
        runtime: &Runtime<L>,
        jobs: &mut [Job],
        runs: &[(JobId, AttemptNo, Run)],
        next: &mut Looks,
    ) {
        let (terms, now) = (self.graces(runtime).retry, self.clock.now());
        let (mut command, mut relaxed) = (Exclude::default(), Vec::new());
        for (place, job) in jobs.iter().enumerate().filter(|(_, job)| job.desired == DesiredState::Run) {
            for attempt in job.attempts_in_slurm() {
                let of_attempt = |(id, no, _): &&(JobId, AttemptNo, Run)| *id == job.id && *no == attempt.no;
                let own = runs.iter().filter(of_attempt).map(|(_, _, run)| run);
                match (relax_attempt(job, attempt, own, &terms, now), attempt.slurm_id) {
                    (Ok(exclusions), Some(id)) => {
                        let nodes = with_own_exclusions(job, &exclusions.keep);
                        command.jobs.push((id, attempt.key(job.id), nodes));
                        relaxed.push((place, exclusions));
                    }
                    (Err(at), _) => next.add(job.id, at),
                    (Ok(_), None) => {}
                }
            }
        }
        if relaxed.is_empty() {
            return;
        }
        let failed = match runtime.target.link.call(&command).await {
            Ok(answer) => answer.failed,
            Err(error) => {
                let of = relaxed.iter().map(|(place, _)| &jobs[*place]);
                warn_of_each(of, &error, "the excluded nodes of the array could not be changed");
                for (place, _) in relaxed {
                    next.add(jobs[place].id, Some(now + TRY_AGAIN));
                }
                return;
            }
        };
        for ((place, exclusions), failure) in relaxed.into_iter().zip(failed) {
            let job = &mut jobs[place];
            match failure {
                None => {
                    *job = job.with_relaxed_exclusions(&exclusions);
                    tracing::info!(job.id = %job.id, attempt = exclusions.attempt.get(), "{}", job.message);
                }
                Some(failure) => {
                    tracing::warn!(job.id = %job.id, error = %failure, "Slurm refused to change the excluded nodes of the array");
                    next.add(job.id, Some(now + TRY_AGAIN));
                }
            }
        }
    }
}
