//! What callers do: they insert jobs and change their desired state. The same calls as those of the real store.

use domain::{ArrayState, DesiredState, Job, JobId, Phase, Secrets, Status, Timestamp};
use persistence::{Inserted, Lane, NewJob, Requested};
use slurm::TaskSet;

use super::{MemoryStore, Tables, row::JobRow};

impl MemoryStore {
    pub fn insert_job(&self, new: &NewJob) -> Inserted {
        let now = self.now();
        let mut tables = self.tables();
        let id = new.job.id;
        if tables.deleted.contains(&id) {
            return Inserted::Other;
        }
        if let Some(row) = tables.jobs.get(&id) {
            let same = row.job.owner == new.job.owner && row.request_hash == new.request_hash;
            let visible = row.job.desired != DesiredState::Delete;
            return if same && visible { Inserted::Same(row.current()) } else { Inserted::Other };
        }
        let unknown = tables.unknown_needs(&new.job);
        if !unknown.is_empty() {
            return Inserted::NeedsUnknown(unknown);
        }
        let secrets = Some(new.secrets.clone()).filter(|secrets| !secrets.is_empty());
        let row = JobRow::new(new.job.clone(), secrets, new.request_hash, now);
        let stored = row.current();
        tables.jobs.insert(id, row);
        tables.wake(&new.job.cluster, Some(Lane::of(new.job.phase)));
        Inserted::Created(stored)
    }

    /// `None` also when its files are still to be removed.
    pub fn find_job(&self, id: JobId) -> Option<Job> {
        self.tables().find(id)
    }

    pub fn request_cancel(&self, id: JobId, now: Timestamp) -> Requested {
        let may = |job: &Job| {
            job.phase != Phase::Ended && matches!(job.desired, DesiredState::Run | DesiredState::Pause)
        };
        self.request(id, now, may, |row| {
            (row.job.desired, row.job.status) = (DesiredState::Cancel, Status::Canceling);
            "Canceling.".clone_into(&mut row.job.message);
        })
    }

    pub fn request_pause(&self, id: JobId, now: Timestamp) -> Requested {
        let may = |job: &Job| job.phase != Phase::Ended && job.desired == DesiredState::Run;
        self.request(id, now, may, |row| {
            (row.job.desired, row.job.status) = (DesiredState::Pause, Status::Pausing);
            "Pausing.".clone_into(&mut row.job.message);
        })
    }

    pub fn request_resume(&self, id: JobId, now: Timestamp) -> Requested {
        let may = |job: &Job| job.phase == Phase::Paused && job.desired == DesiredState::Pause;
        self.request(id, now, may, |row| {
            (row.job.desired, row.job.status, row.job.phase) =
                (DesiredState::Run, Status::Resuming, row.first_phase());
            "Resuming; waiting to be submitted.".clone_into(&mut row.job.message);
        })
    }

    pub fn request_cancel_tasks(&self, id: JobId, tasks: &TaskSet, now: Timestamp) -> Requested {
        let may = |job: &Job| job.phase != Phase::Ended && job.array.is_some();
        self.request(id, now, may, |row| row.withdrawn = row.withdrawn.union(tasks))
    }

    /// `array`: of a job with an array, its state with the tasks that go again as not submitted.
    pub fn request_retry(
        &self,
        id: JobId,
        secrets: &Secrets,
        array: Option<&ArrayState>,
        now: Timestamp,
    ) -> Requested {
        let may = |job: &Job| {
            job.phase == Phase::Ended
                && matches!(job.status, Status::Error | Status::Canceled)
                && job.desired != DesiredState::Delete
        };
        let secrets = Some(secrets.clone()).filter(|secrets| !secrets.is_empty());
        let clock = self.now();
        let requested = self.request(id, now, may, |row| {
            let phase = row.first_phase();
            let job = &mut row.job;
            (job.desired, job.status, job.phase) = (DesiredState::Run, Status::Pending, phase);
            "Retrying; waiting to be submitted.".clone_into(&mut job.message);
            (job.retry_count, job.failures, job.is_skipped) = (0, Vec::new(), false);
            (job.submitted_at, job.started_at, job.finished_at) = (None, None, None);
            job.pending_reason = None;
            row.secrets = secrets;
            if let Some(array) = array {
                job.array = Some(array.clone());
                row.withdrawn.clone_from(&array.withdrawn);
                let going = array.open();
                let again = row.tasks.iter_mut().filter(|((_, task), _)| going.contains(*task));
                again.for_each(|(_, run)| run.superseded = true);
            }
        });
        if matches!(requested, Requested::Taken(_)) {
            self.tables().reopen(id, now, clock);
        }
        requested
    }

    pub fn request_delete(&self, id: JobId, artifacts: bool, now: Timestamp) -> Requested {
        let is_needed = self.tables().is_needed(id);
        if let (Some(job), true) = (self.find_job(id), is_needed) {
            return Requested::Stays(job);
        }
        if !artifacts {
            let mut tables = self.tables();
            return match tables.find(id) {
                None => Requested::NoJob,
                Some(job) if job.phase != Phase::Ended => Requested::Stays(job),
                Some(job) => {
                    tables.delete(id);
                    tables.wake(&job.cluster, Some(Lane::of(job.phase)));
                    Requested::Taken(job)
                }
            };
        }
        let before = self.find_job(id);
        let may = |job: &Job| job.phase == Phase::Ended && job.desired != DesiredState::Delete;
        match (self.request(id, now, may, |row| row.job.desired = DesiredState::Delete), before) {
            // It is visible to the caller of the deletion only.
            (_, Some(job)) if self.find_job(id).is_none() => Requested::Taken(job),
            (other, _) => other,
        }
    }

    fn request(
        &self,
        id: JobId,
        now: Timestamp,
        may: impl Fn(&Job) -> bool,
        change: impl FnOnce(&mut JobRow),
    ) -> Requested {
        let clock = self.now();
        let mut tables = self.tables();
        let Some(row) = tables.jobs.get_mut(&id).filter(|row| may(&row.job)) else {
            return tables.find(id).map_or(Requested::NoJob, Requested::Stays);
        };
        let (stage, before) = (row.stage(), row.before());
        change(row);
        row.due_at = Some(clock);
        row.job.last_modified = now;
        row.job.version += 1;
        row.changed_from(stage);
        let (job, broken) = (row.current(), row.broken_rule());
        tables.refused.extend(broken.map(|rule| format!("{id}: {rule}")));
        tables.wake_needing(id, before, clock);
        tables.wake(&job.cluster, Some(Lane::of(job.phase)));
        Requested::Taken(job)
    }
}

impl Tables {
    fn find(&self, id: JobId) -> Option<Job> {
        self.jobs.get(&id).filter(|row| row.job.desired != DesiredState::Delete).map(JobRow::current)
    }

    pub(super) fn delete(&mut self, id: JobId) {
        self.jobs.remove(&id);
        self.deleted.insert(id);
    }
}
