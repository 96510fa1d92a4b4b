//! What a step needs, and its result.

use std::{
    collections::{BTreeSet, HashMap, HashSet},
    time::Duration,
};

use domain::{Attempt, DesiredState, Job, JobId, Phase, Run, Secrets, Status, Timestamp, Transition};
use persistence::{Lease, PurgeTarget, Purges, StepRecords, StoreError};

use super::{MemoryStore, Right, Turn, after, is_held, row::JobRow};

impl StepRecords for MemoryStore {
    async fn open_secrets(
        &self,
        jobs: &[JobId],
    ) -> Result<HashMap<JobId, Result<Secrets, StoreError>>, StoreError> {
        let tables = self.tables();
        let of = |id: &JobId| Some((*id, Ok(tables.jobs.get(id)?.secrets.clone()?)));
        Ok(jobs.iter().filter_map(of).collect())
    }

    async fn record_intents(
        &self,
        lease: &Lease,
        steps: &[Transition],
        now: Timestamp,
    ) -> Result<HashSet<JobId>, StoreError> {
        Ok(self.record(lease, steps, false, now))
    }

    async fn record_scripts(&self, scripts: &[(JobId, u32, Option<String>)]) -> Result<(), StoreError> {
        let mut tables = self.tables();
        for (id, no, text) in scripts {
            if let Some(row) = tables.jobs.get_mut(id).filter(|row| row.attempts.contains_key(no)) {
                let before = || row.scripts.range(..no).next_back().map(|(_, text)| text.clone());
                if let Some(text) = text.clone().or_else(before) {
                    row.scripts.insert(*no, text);
                }
            }
        }
        Ok(())
    }

    async fn record_steps(
        &self,
        lease: &Lease,
        steps: &[Transition],
        now: Timestamp,
    ) -> Result<HashSet<JobId>, StoreError> {
        Ok(self.record(lease, steps, true, now))
    }
}

impl Purges for MemoryStore {
    async fn purge_targets(&self, jobs: &[JobId]) -> Result<Vec<PurgeTarget>, StoreError> {
        let tables = self.tables();
        let rows = jobs.iter().filter_map(|id| Some((*id, tables.jobs.get(id)?)));
        let remains = |(job, row): (JobId, &JobRow)| {
            let dirs: BTreeSet<_> = row.attempts.values().map(|attempt| attempt.job_dir.clone()).collect();
            let (failed, base_dirs) = (row.purges_failed, dirs.into_iter().collect());
            PurgeTarget { job, failed, base_dirs, unreadable: false }
        };
        Ok(rows.map(remains).collect())
    }

    async fn delete_purged(&self, lease: &Lease, jobs: &[JobId]) -> Result<(), StoreError> {
        let now = self.now();
        let mut tables = self.tables();
        for id in jobs {
            let ours =
                |row: &JobRow| row.job.desired == DesiredState::Delete && is_held(row.held, lease.token, now);
            if tables.jobs.get(id).is_some_and(ours) {
                tables.delete(*id);
            }
        }
        Ok(())
    }

    async fn put_off_purges(&self, lease: &Lease, jobs: &[(JobId, Duration)]) -> Result<(), StoreError> {
        let now = self.now();
        let mut tables = self.tables();
        for (id, wait) in jobs {
            let ours = |row: &&mut JobRow| {
                row.job.desired == DesiredState::Delete && is_held(row.held, lease.token, now)
            };
            if let Some(row) = tables.jobs.get_mut(id).filter(ours) {
                row.due_at = Some(after(now, *wait));
                row.purges_failed += 1;
                row.held = None;
            }
        }
        Ok(())
    }
}

impl MemoryStore {
    fn record(&self, lease: &Lease, steps: &[Transition], release: bool, at: Timestamp) -> HashSet<JobId> {
        let now = self.now();
        let mut tables = self.tables();
        let mut stored = HashSet::new();
        let (mut refused, mut changed) = (Vec::new(), Vec::new());
        for Transition { job, due_at } in steps {
            let Some(row) = tables.jobs.get_mut(&job.id) else { continue };
            let before = row.before();
            if !is_held(row.held, lease.token, now) {
                continue;
            }
            let in_slurm = row.is_active() || row.job.phase == Phase::Finishing;
            let has_news = row.job.version != job.version;
            let is_in_queue = job.array.is_none() && job.phase == Phase::InQueue && in_slurm;
            let is_skipped = job.phase == Phase::Ended && job.skips();
            if has_news && (is_in_queue || is_skipped) {
                continue;
            }
            let stage = row.stage();
            row.take_step(job, at);
            row.due_at = match due_at {
                _ if job.phase == Phase::Ended => None,
                _ if row.job.desired != job.desired => Some(now),
                // A poll, or the owner, has said something of its tasks since; or a job that it needs has begun or ended.
                _ if (job.array.is_some() || job.phase == Phase::Waiting) && has_news => Some(now),
                due_at => due_at.map(|due| now + (due - at)),
            };
            if release {
                row.held = None;
            }
            row.changed_from(stage);
            refused.extend(row.broken_rule().map(|rule| format!("{}: {rule}", job.id)));
            stored.insert(job.id);
            changed.push((job.id, before));
        }
        // As the triggers of the schema, which see all rows of a statement as it leaves them.
        for (id, before) in changed {
            tables.wake_needing(id, before, now);
        }
        tables.note_unaccounted(now);
        tables.refused.extend(refused);
        tables.turns.extend(stored.iter().map(|id| Turn::Used(Right::Step(*id), lease.token)));
        stored
    }
}

impl JobRow {
    fn take_step(&mut self, job: &Job, at: Timestamp) {
        let number = job.attempt.as_ref().map_or(0, |attempt| attempt.no.get());
        if self.job.phase == Phase::Finishing {
            self.add_lines(job, at);
        }
        let old = &mut self.job;
        old.status = match old.desired {
            desired if desired == job.desired || job.phase == Phase::Ended => job.status,
            DesiredState::Cancel => Status::Canceling,
            DesiredState::Pause => Status::Pausing,
            DesiredState::Run | DesiredState::Delete => job.status,
        };
        old.phase = job.phase;
        old.message.clone_from(&job.message);
        old.pending_reason.clone_from(&job.pending_reason);
        old.retry_count = job.retry_count;
        old.failures.clone_from(&job.failures);
        old.is_skipped = job.is_skipped;
        old.finishing_since = job.finishing_since;
        old.submitted_at = job.submitted_at;
        old.started_at = job.started_at;
        old.finished_at = job.finished_at;
        old.observed_at = job.observed_at;
        old.source = job.source;
        old.array.clone_from(&job.array);
        old.last_modified = at;
        old.version += 1;
        self.attempt = number;
        if job.phase == Phase::Ended {
            self.secrets = None;
        }
        for earlier in job.array.iter().flat_map(|array| &array.earlier) {
            self.put_attempt(earlier, &Run::default());
        }
        if let Some(attempt) = &job.attempt {
            self.put_attempt(attempt, &job.run);
        }
    }

    fn put_attempt(&mut self, attempt: &Attempt, run: &Run) {
        let number = attempt.no.get();
        let mut new = attempt.clone();
        if let Some(old) = self.attempts.remove(&number) {
            (new.token, new.job_dir, new.intended_at) = (old.token, old.job_dir, old.intended_at);
        }
        self.attempts.insert(number, new);
        // A step adds the run of its attempt, and writes one that is over. Polls own all others.
        // One that no poll has seen is not stored: then what is stored is of another Slurm job of the attempt.
        if self.runs.get(&number).is_none_or(|known| known.is_over) {
            if *run == Run::default() {
                self.runs.remove(&number);
            } else {
                self.runs.insert(number, Run { status: run.status.stored(), ..run.clone() });
            }
        }
    }
}
