//! Jobs that wait for other jobs: the triggers of the schema, and what a step reads.

use std::collections::{BTreeSet, HashMap};

use domain::{DesiredState, Job, JobId, NeededJob, Phase, Status, Timestamp};
use persistence::{Lane, Needs, StoreError};

use super::{MemoryStore, Tables, row::JobRow};

impl Needs for MemoryStore {
    async fn needed(&self, jobs: &[JobId]) -> Result<HashMap<JobId, Vec<NeededJob>>, StoreError> {
        let tables = self.tables();
        let known = |id: &JobId| {
            let row = tables.jobs.get(id).filter(|row| !row.job.spec.needs.is_empty())?;
            let needs = row.job.spec.needs.iter().map(|need| tables.needed(JobId::new(need.job)));
            Some((*id, needs.collect()))
        };
        Ok(jobs.iter().filter_map(known).collect())
    }
}

/// What the triggers compare.
pub(super) type Before = (Phase, bool);

impl JobRow {
    pub(super) fn before(&self) -> Before {
        (self.job.phase, self.job.started_at.is_some())
    }

    /// Where it goes on when it is resumed or retried.
    pub(super) fn first_phase(&self) -> Phase {
        if self.job.spec.needs.is_empty() || self.needs_met { Phase::Queued } else { Phase::Waiting }
    }

    fn needs(&self, id: JobId) -> bool {
        self.job.spec.needs.iter().any(|need| need.job == id.get())
    }

    fn may_reopen(&self) -> bool {
        let Job { is_skipped, desired, spec, .. } = &self.job;
        *is_skipped
            && *desired == DesiredState::Run
            && spec.secret_env.is_empty()
            && spec.cloud_secret_keys.is_empty()
    }
}

impl Tables {
    fn needed(&self, id: JobId) -> NeededJob {
        let Some(row) = self.jobs.get(&id).filter(|row| row.job.desired != DesiredState::Delete) else {
            return NeededJob::default();
        };
        let attempt = row.attempts.get(&row.attempt);
        NeededJob {
            status: Some(row.job.status),
            has_started: row.job.started_at.is_some(),
            job_dir: attempt.map(|attempt| attempt.job_dir.clone()),
        }
    }

    /// The places of the needs of a new job that name no job of its owner.
    pub(super) fn unknown_needs(&self, job: &Job) -> Vec<usize> {
        let is_known = |id: JobId| {
            id == job.id
                || self
                    .jobs
                    .get(&id)
                    .is_some_and(|row| row.job.owner == job.owner && row.job.desired != DesiredState::Delete)
        };
        let needs = job.spec.needs.iter().enumerate();
        needs.filter(|(_, need)| !is_known(JobId::new(need.job))).map(|(place, _)| place).collect()
    }

    /// Whether a job needs this one and has not ended.
    pub(super) fn is_needed(&self, id: JobId) -> bool {
        self.jobs.values().any(|row| row.needs(id) && row.job.phase != Phase::Ended)
    }

    /// After each change of a row: a job that begins or ends wakes those that wait for it.
    pub(super) fn wake_needing(&mut self, id: JobId, before: Before, clock: Timestamp) {
        let Some(row) = self.jobs.get_mut(&id) else { return };
        let (phase, has_started) = row.before();
        row.needs_met |= before.0 == Phase::Waiting && phase == Phase::Queued;
        let ends = before.0 != Phase::Ended && phase == Phase::Ended;
        if !ends && (before.1 || !has_started) {
            return;
        }
        let mut clusters = BTreeSet::new();
        for row in self.jobs.values_mut().filter(|row| row.job.phase == Phase::Waiting && row.needs(id)) {
            row.due_at = Some(clock);
            row.job.version += 1;
            clusters.insert(row.job.cluster.clone());
        }
        for cluster in &clusters {
            self.wake(cluster, Some(Lane::Submit));
        }
    }

    /// Jobs that were canceled because of this one, which goes again, wait for it again.
    pub(super) fn reopen(&mut self, retried: JobId, now: Timestamp, clock: Timestamp) {
        let mut again = vec![retried];
        while let Some(id) = again.pop() {
            for row in self.jobs.values_mut().filter(|row| row.needs(id) && row.may_reopen()) {
                let stage = row.stage();
                let job = &mut row.job;
                (job.status, job.phase, job.finished_at) = (Status::Pending, Phase::Waiting, None);
                job.is_skipped = false;
                "Waiting again for the jobs that it needs.".clone_into(&mut job.message);
                if let Some(array) = &mut job.array {
                    (array.counts.pending, array.counts.canceled) = (array.counts.canceled, 0);
                }
                job.last_modified = now;
                job.version += 1;
                row.due_at = Some(clock);
                row.changed_from(stage);
                again.push(row.job.id);
            }
        }
    }
}
