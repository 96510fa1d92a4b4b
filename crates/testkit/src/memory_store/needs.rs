//! Jobs that wait for other jobs: the triggers of the schema, and what a step reads.

use std::collections::{BTreeSet, HashMap};

use domain::{
    ArrayState, DesiredState, Job, JobId, NeedWhen, NeededJob, NeededTasks, Phase, Status, TaskCounts,
    TaskOutcome, Timestamp,
};
use persistence::{Lane, Needs, StoreError};

use super::{MemoryStore, Tables, row::JobRow};

impl Needs for MemoryStore {
    async fn needed(&self, jobs: &[JobId]) -> Result<HashMap<JobId, Vec<NeededJob>>, StoreError> {
        let tables = self.tables();
        let known = |id: &JobId| {
            let row = tables.jobs.get(id).filter(|row| !row.job.spec.needs.is_empty())?;
            let needs = row.job.spec.needs.iter().map(|need| NeededJob {
                was_met: row.needs_met,
                ..tables.needed(JobId::new(need.job), need.when)
            });
            Some((*id, needs.collect()))
        };
        Ok(jobs.iter().filter_map(known).collect())
    }
}

/// What the triggers compare.
pub(super) type Before = (Phase, bool, Option<TaskCounts>);

impl JobRow {
    pub(super) fn before(&self) -> Before {
        let counts = self.job.array.as_ref().map(|array| array.counts);
        (self.job.phase, self.job.started_at.is_some(), counts)
    }

    /// Where it goes on when it is resumed or retried.
    pub(super) fn first_phase(&self) -> Phase {
        if self.job.spec.needs.is_empty() || self.needs_met { Phase::Queued } else { Phase::Waiting }
    }

    fn needs(&self, id: JobId) -> bool {
        self.job.spec.needs.iter().any(|need| need.job == id.get())
    }

    fn may_reopen(&self) -> bool {
        let Job { desired, spec, phase, .. } = &self.job;
        *phase == Phase::Ended && self.job.skips() && *desired == DesiredState::Run && !spec.has_secrets()
    }
}

impl JobRow {
    /// How its tasks have ended.
    fn ended(&self, array: &ArrayState) -> NeededTasks {
        let newest = self.newest_tasks();
        let with = |wanted: &[TaskOutcome]| {
            let of = newest.iter().filter(|(_, run)| !run.superseded);
            let of = of.filter(|(_, run)| run.outcome.is_some_and(|outcome| wanted.contains(&outcome)));
            of.map(|(task, _)| *task).collect::<slurm::TaskSet>()
        };
        let lost = with(&[TaskOutcome::Error, TaskOutcome::Canceled]);
        NeededTasks { done: with(&[TaskOutcome::Done]), lost: lost.union(&array.dropped) }
    }
}

impl Tables {
    fn needed(&self, id: JobId, when: NeedWhen) -> NeededJob {
        let Some(row) = self.jobs.get(&id).filter(|row| row.job.desired != DesiredState::Delete) else {
            return NeededJob::default();
        };
        let attempt = row.attempts.get(&row.attempt);
        NeededJob {
            status: Some(row.job.status),
            has_started: row.job.started_at.is_some(),
            job_dir: attempt.map(|attempt| attempt.job_dir.clone()),
            was_met: false,
            tasks: row.job.array.as_ref().filter(|_| when == NeedWhen::Each).map(|array| row.ended(array)),
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
        self.jobs
            .values()
            .any(|row| (row.needs(id) || row.conversion == Some(id)) && row.job.phase != Phase::Ended)
    }

    /// After each change of a row: a job that begins or ends wakes those that wait for it, and one that leaves its conversion may end it.
    pub(super) fn wake_needing(&mut self, id: JobId, before: Before, clock: Timestamp) {
        let Some(row) = self.jobs.get_mut(&id) else { return };
        let (phase, has_started, counts) = row.before();
        row.needs_met |= before.0 == Phase::Waiting && phase == Phase::Queued;
        self.leave_conversion(id, before.0, clock);
        let turns = (before.0 == Phase::Ended) != (phase == Phase::Ended) || (!before.1 && has_started);
        let ended = |counts: Option<TaskCounts>| {
            counts.map(|TaskCounts { done, error, canceled, .. }| (done, error, canceled))
        };
        if !turns && ended(before.2) == ended(counts) {
            return;
        }
        let mut woken = BTreeSet::new();
        let awaits = |row: &&mut JobRow| {
            row.job.phase != Phase::Ended
                && (turns && matches!(row.job.phase, Phase::Waiting | Phase::ConvertingImage)
                    || row.job.array.as_ref().is_some_and(ArrayState::follows_others))
        };
        for row in
            self.jobs.values_mut().filter(|row| row.needs(id) || row.conversion == Some(id)).filter(awaits)
        {
            row.due_at = Some(clock);
            row.job.version += 1;
            woken.insert((row.job.cluster.clone(), Lane::of(row.job.phase)));
        }
        for (cluster, lane) in &woken {
            self.wake(cluster, Some(*lane));
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
                job.last_modified = now;
                job.version += 1;
                row.due_at = Some(clock);
                row.changed_from(stage);
                again.push(row.job.id);
            }
        }
    }
}
