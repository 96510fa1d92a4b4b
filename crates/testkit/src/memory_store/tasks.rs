//! The runs of arrays. This store keeps none: its histories have no arrays.

use std::collections::{HashMap, HashSet};

use domain::{AttemptNo, AttemptTally, ClusterName, Job, JobId, Timestamp};
use persistence::{
    ActiveArray, ConcludedTask, EndedTask, Lease, ObservedTask, PollLease, StepRecord, StepRecords as _,
    StoreError, TaskPolls, TaskRecords,
};
use slurm::TaskSet;

use super::MemoryStore;

impl TaskPolls for MemoryStore {
    async fn active_arrays(&self, _: &ClusterName) -> Result<Vec<ActiveArray>, StoreError> {
        Ok(Vec::new())
    }

    async fn record_observed_tasks(
        &self,
        _: &PollLease,
        _: &[ObservedTask],
        _: Timestamp,
    ) -> Result<(), StoreError> {
        Ok(())
    }
}

impl TaskRecords for MemoryStore {
    async fn concluded_tasks(&self, _: &[JobId]) -> Result<HashMap<JobId, TaskSet>, StoreError> {
        Ok(HashMap::new())
    }

    async fn ended_tasks(&self, _: &[Job], _: u32) -> Result<Vec<EndedTask>, StoreError> {
        Ok(Vec::new())
    }

    async fn task_tallies(
        &self,
        _: &[JobId],
    ) -> Result<HashMap<JobId, Vec<(AttemptNo, AttemptTally)>>, StoreError> {
        Ok(HashMap::new())
    }

    async fn record_tended(
        &self,
        lease: &Lease,
        steps: &[StepRecord],
        _: &[&ConcludedTask],
        now: Timestamp,
    ) -> Result<HashSet<JobId>, StoreError> {
        self.record_steps(lease, steps, now).await
    }
}
