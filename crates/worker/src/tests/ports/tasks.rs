//! The runs of arrays.

use std::collections::{HashMap, HashSet};

use domain::{AttemptNo, AttemptTally, ClusterName, Job, JobId, Run, Timestamp, Transition};
use persistence::{
    ActiveArray, ConcludedTask, EndedTask, Lease, ObservedTask, PollLease, StoreError, TaskPolls,
    TaskRecords, WorkStore,
};
use slurm::TaskSet;

use super::{Gate, GatedStore};

impl<S: WorkStore, G: Gate> TaskPolls for GatedStore<S, G> {
    async fn active_arrays(&self, cluster: &ClusterName) -> Result<Vec<ActiveArray>, StoreError> {
        self.gate.pass("active_arrays", self.store.active_arrays(cluster)).await
    }

    async fn record_observed_tasks(
        &self,
        lease: &PollLease,
        changed: &[ObservedTask],
        now: Timestamp,
    ) -> Result<(), StoreError> {
        self.gate.pass("record_observed_tasks", self.store.record_observed_tasks(lease, changed, now)).await
    }
}

impl<S: WorkStore, G: Gate> TaskRecords for GatedStore<S, G> {
    async fn concluded_tasks(&self, jobs: &[JobId]) -> Result<HashMap<JobId, TaskSet>, StoreError> {
        self.gate.pass("concluded_tasks", self.store.concluded_tasks(jobs)).await
    }

    async fn ended_tasks(&self, jobs: &[Job], most: u32) -> Result<Vec<EndedTask>, StoreError> {
        self.gate.pass("ended_tasks", self.store.ended_tasks(jobs, most)).await
    }

    async fn tended_runs(&self, jobs: &[JobId]) -> Result<Vec<(JobId, AttemptNo, Run)>, StoreError> {
        self.gate.pass("tended_runs", self.store.tended_runs(jobs)).await
    }

    async fn task_tallies(
        &self,
        jobs: &[JobId],
    ) -> Result<HashMap<JobId, Vec<(AttemptNo, AttemptTally)>>, StoreError> {
        self.gate.pass("task_tallies", self.store.task_tallies(jobs)).await
    }

    async fn record_tended(
        &self,
        lease: &Lease,
        steps: &[Transition],
        runs: &[&ConcludedTask],
        now: Timestamp,
    ) -> Result<HashSet<JobId>, StoreError> {
        self.gate.pass("record_tended", self.store.record_tended(lease, steps, runs, now)).await
    }
}
