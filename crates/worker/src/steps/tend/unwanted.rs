//! Which tasks of an array must not go on, and their cancellation.

use std::collections::HashMap;

use chrono::TimeDelta;
use domain::{AttemptNo, DesiredState, Job, JobId, Run, Timestamp, released_at};
use persistence::WorkStore;
use remote::Cancel;
use slurm::TaskSet;

use crate::{
    Result, cluster_runtime::Runtime, link::cluster_link::ClusterLink, steps::record::warn_of_each,
    worker::Worker,
};

/// Slurm gives a task its `KillWait` (30 s by default) to end. An earlier repetition of a cancellation would be useless.
pub(super) const CANCEL_AGAIN: TimeDelta = TimeDelta::seconds(45);

/// When jobs must be looked at again.
#[derive(Default)]
pub(super) struct Looks(HashMap<JobId, Timestamp>);

impl Looks {
    pub(super) fn add(&mut self, job: JobId, at: Option<Timestamp>) {
        let Some(at) = at else { return };
        let soonest = self.0.entry(job).or_insert(at);
        *soonest = at.min(*soonest);
    }

    pub(super) fn at(&self, job: JobId) -> Option<Timestamp> {
        self.0.get(&job).copied()
    }
}

/// The tasks that must not go on, by job.
pub(super) struct Unwanted {
    /// Jobs without any are missing.
    pub(super) tasks: HashMap<JobId, TaskSet>,
    /// When the next task has to release its nodes.
    pub(super) next: Looks,
}

impl<L: ClusterLink, S: WorkStore> Worker<L, S> {
    /// The tasks in Slurm that must not go on: their owners do not want them, or they hold their nodes for nothing.
    pub(super) async fn unwanted(
        &self,
        runtime: &Runtime<L>,
        jobs: &[Job],
        runs: &[(JobId, AttemptNo, Run)],
    ) -> Result<Unwanted> {
        let withdrawn =
            |job: &Job| job.array.as_ref().map(|array| array.withdrawn.clone()).unwrap_or_default();
        let some = |job: &&Job| job.desired == DesiredState::Run && !withdrawn(job).is_empty();
        let some: Vec<JobId> = jobs.iter().filter(some).map(|job| job.id).collect();
        let concluded =
            if some.is_empty() { HashMap::new() } else { self.store.concluded_tasks(&some).await? };
        let (graces, now) = (self.graces(runtime), self.clock.now());
        let (mut lingering, mut next) = (HashMap::<JobId, TaskSet>::new(), Looks::default());
        for (job, _, run) in runs {
            match released_at(run, &graces) {
                Some(at) if at <= now => lingering.entry(*job).or_default().insert(run.task),
                at => next.add(*job, at),
            }
        }
        let unwanted = jobs.iter().map(|job| {
            let carried =
                job.attempts_in_slurm().fold(TaskSet::default(), |all, attempt| all.union(&attempt.tasks));
            let unwanted = match (job.desired, concluded.get(&job.id)) {
                (DesiredState::Run, None) => carried.intersection(&withdrawn(job)),
                (DesiredState::Run, Some(concluded)) => {
                    carried.intersection(&withdrawn(job)).without(concluded)
                }
                (DesiredState::Cancel | DesiredState::Pause | DesiredState::Delete, _) => carried,
            };
            let lingering = lingering.get(&job.id).cloned().unwrap_or_default();
            (job.id, unwanted.union(&lingering))
        });
        Ok(Unwanted { tasks: unwanted.filter(|(_, tasks)| !tasks.is_empty()).collect(), next })
    }

    /// Cancels the tasks that are no longer needed. Returns the jobs for which Slurm has accepted it.
    pub(super) async fn cancel_tasks(
        &self,
        runtime: &Runtime<L>,
        jobs: &[Job],
        unwanted: &HashMap<JobId, TaskSet>,
    ) -> Vec<JobId> {
        let now = self.clock.now();
        let is_due = |job: &&Job| {
            let told = job.array.as_ref().and_then(|array| array.told.as_ref());
            let told = told.filter(|told| now - told.at < CANCEL_AGAIN);
            unwanted
                .get(&job.id)
                .is_some_and(|tasks| told.is_none_or(|told| !tasks.without(&told.tasks).is_empty()))
        };
        let due: Vec<&Job> = jobs.iter().filter(is_due).collect();
        if due.is_empty() {
            return Vec::new();
        }
        let mut command = Cancel::default();
        for job in &due {
            for attempt in job.attempts_in_slurm() {
                let (Some(id), key) = (attempt.slurm_id, attempt.key(job.id)) else { continue };
                let tasks =
                    unwanted.get(&job.id).map(|tasks| tasks.intersection(&attempt.tasks)).unwrap_or_default();
                if tasks == attempt.tasks {
                    command.jobs.push((id, key));
                } else if !tasks.is_empty() {
                    command.tasks.push((id, key, tasks.less(attempt.base)));
                }
            }
        }
        let why = match runtime.target.link.call(&command).await {
            Ok(answer) => answer.refused.map(|failure| failure.excerpt),
            Err(error) => Some(error.to_string()),
        };
        if let Some(why) = why {
            warn_of_each(due, &why, "the cancellation failed");
            return Vec::new();
        }
        if let Err(error) = self.poll_soon(runtime).await {
            tracing::warn!(%error, "the next poll could not be brought forward");
        }
        due.iter().map(|job| job.id).collect()
    }
}
