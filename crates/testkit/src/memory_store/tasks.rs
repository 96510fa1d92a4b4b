//! The runs of jobs with an array.

use std::collections::{BTreeMap, HashMap, HashSet};

use domain::{
    AttemptNo, AttemptTally, ClusterName, EndedRun, Job, JobId, NewestRun, Phase, Run, TaskEnding,
    TaskOutcome, Timestamp, Transition,
};
use persistence::{
    ActiveArray, ConcludedTask, EndedTask, Lease, ObservedTask, PollLease, StepRecords as _, StoreError,
    TaskPolls, TaskRecords,
};
use slurm::TaskSet;

use super::{
    MemoryStore, Right, Turn, is_held,
    row::{JobRow, TaskRow},
};

fn no(attempt: u32) -> AttemptNo {
    AttemptNo::new(attempt).unwrap_or(AttemptNo::FIRST)
}

impl TaskPolls for MemoryStore {
    async fn active_arrays(&self, cluster: &ClusterName) -> Result<Vec<ActiveArray>, StoreError> {
        let tables = self.tables();
        let active = |row: &&JobRow| {
            row.job.cluster == *cluster && row.job.array.is_some() && row.job.phase != Phase::Ended
        };
        let array = |row: &JobRow| {
            let mut seen: HashMap<AttemptNo, TaskSet> = HashMap::new();
            for (attempt, task) in row.tasks.keys() {
                seen.entry(no(*attempt)).or_default().insert(*task);
            }
            let running = row.tasks.iter().filter(|(_, task)| !task.run.is_over);
            let runs = running.map(|((attempt, _), task)| (no(*attempt), task.run.clone())).collect();
            let superseded = row.tasks.iter().filter(|(_, run)| run.superseded);
            let retried_at = row.job.array.as_ref().map_or(0, |array| array.retried_at);
            let carried = |((attempt, task), row): (&(u32, u32), &TaskRow)| {
                let mut run = row.run.clone();
                if *attempt <= retried_at {
                    run.forget_time();
                }
                (*task, run)
            };
            let earlier = superseded.map(carried).collect();
            ActiveArray { job: row.current(), runs, seen, earlier }
        };
        Ok(tables.jobs.values().filter(active).map(array).collect())
    }

    async fn record_observed_tasks(
        &self,
        lease: &PollLease,
        changed: &[ObservedTask],
        now: Timestamp,
    ) -> Result<(), StoreError> {
        let clock = self.now();
        let mut tables = self.tables();
        if !tables.polls.get(&lease.cluster).is_some_and(|row| is_held(row.held, lease.token, clock)) {
            return Err(lease.lost());
        }
        tables.turns.push(Turn::Used(Right::Poll, lease.token));
        let mut told = HashSet::new();
        for ObservedTask { job, attempt, run } in changed {
            let open = |row: &&mut JobRow| row.job.array.is_some() && row.job.phase != Phase::Ended;
            let Some(row) = tables.jobs.get_mut(job).filter(open) else { continue };
            let key = (attempt.get(), run.task);
            if row.tasks.get(&key).is_some_and(|known| known.run.is_over) {
                continue;
            }
            row.add_lines_of(attempt.get(), run, now);
            let kept = TaskRow {
                run: Run { status: run.status.stored(), ..run.clone() },
                over_since: run.is_over.then_some(now),
                outcome: None,
                superseded: false,
                failure: None,
            };
            row.tasks.insert(key, kept);
            if told.insert(*job) {
                row.due_at = Some(clock);
                row.job.observed_at = Some(now);
                row.job.last_modified = now;
                row.job.version += 1;
            }
        }
        Ok(())
    }
}

impl TaskRecords for MemoryStore {
    async fn ended_tasks(&self, jobs: &[Job], most: u32) -> Result<Vec<EndedTask>, StoreError> {
        let tables = self.tables();
        let mut ended = Vec::new();
        for job in jobs {
            let Some(row) = tables.jobs.get(&job.id) else { continue };
            let open = row.tasks.iter().filter(|(_, task)| task.run.is_over && task.outcome.is_none());
            ended.extend(open.map(|((attempt, task), found)| {
                let failures = job.failures.iter().filter(|past| past.task == *task).cloned().collect();
                let since = found.over_since.unwrap_or(Timestamp::UNIX_EPOCH);
                let ended = EndedRun { run: found.run.clone(), since, failures };
                EndedTask { job: job.id, attempt: no(*attempt), ended }
            }));
        }
        ended.sort_by_key(|task| task.ended.since);
        ended.truncate(most as usize);
        Ok(ended)
    }

    async fn concluded_tasks(&self, jobs: &[JobId]) -> Result<HashMap<JobId, TaskSet>, StoreError> {
        let tables = self.tables();
        let rows = jobs.iter().filter_map(|id| Some((*id, tables.jobs.get(id)?)));
        let concluded = |row: &JobRow| {
            let newest = row.newest_tasks().into_iter().filter(|(_, task)| task.outcome.is_some());
            newest.map(|(task, _)| task).collect::<TaskSet>()
        };
        Ok(rows.map(|(id, row)| (id, concluded(row))).filter(|(_, tasks)| !tasks.is_empty()).collect())
    }

    async fn tended_runs(&self, jobs: &[JobId]) -> Result<Vec<(JobId, AttemptNo, Run)>, StoreError> {
        let tables = self.tables();
        let rows = jobs.iter().filter_map(|id| Some((*id, tables.jobs.get(id)?)));
        let lingers = |run: &Run| run.kill_reason.is_some() || run.progress.final_status_at.is_some();
        let of = |(id, row): (JobId, &JobRow)| {
            let excludes = |attempt: u32| {
                let earlier = row.job.array.iter().flat_map(|array| &array.earlier);
                let mut attempts = earlier.chain(&row.job.attempt);
                attempts.any(|known| known.no.get() == attempt && !known.excluded.is_empty())
            };
            let runs = row.tasks.iter().map(|((attempt, _), task)| (*attempt, task.run.clone()));
            let open = runs.filter(|(_, run)| !run.is_over);
            let tended =
                open.filter(|(attempt, run)| lingers(run) || run.reason.is_some() && excludes(*attempt));
            tended.map(|(attempt, run)| (id, no(attempt), run)).collect::<Vec<_>>()
        };
        Ok(rows.flat_map(of).collect())
    }

    async fn task_tallies(
        &self,
        jobs: &[JobId],
    ) -> Result<HashMap<JobId, Vec<(AttemptNo, AttemptTally)>>, StoreError> {
        let tables = self.tables();
        let rows = jobs.iter().filter_map(|id| Some((*id, tables.jobs.get(id)?)));
        Ok(rows.map(|(id, row)| (id, row.tallies())).filter(|(_, tallies)| !tallies.is_empty()).collect())
    }

    async fn record_tended(
        &self,
        lease: &Lease,
        steps: &[Transition],
        runs: &[&ConcludedTask],
        now: Timestamp,
    ) -> Result<HashSet<JobId>, StoreError> {
        let stored = self.record_steps(lease, steps, now).await?;
        let mut tables = self.tables();
        for ConcludedTask { job, attempt, ending } in runs.iter().filter(|run| stored.contains(&run.job)) {
            let TaskEnding { run, outcome, .. } = ending;
            let Some(row) = tables.jobs.get_mut(job) else { continue };
            row.add_lines_of(attempt.get(), run, now);
            let Some(known) =
                row.tasks.get_mut(&(attempt.get(), run.task)).filter(|known| known.outcome.is_none())
            else {
                continue;
            };
            known.run = Run { status: run.status.stored(), failure: None, ..run.clone() };
            known.failure.clone_from(&run.failure);
            known.outcome = *outcome;
            known.superseded = *outcome == Some(TaskOutcome::Retried);
        }
        Ok(stored)
    }
}

impl MemoryStore {
    /// The tasks that the owner of a job has canceled.
    pub fn withdrawn(&self, job: JobId) -> TaskSet {
        self.tables().jobs.get(&job).map(|row| row.withdrawn.clone()).unwrap_or_default()
    }

    /// What the newest run of each task of a job says.
    pub fn newest_states(&self, job: JobId) -> HashMap<u32, NewestRun> {
        let tables = self.tables();
        let state = |task: &TaskRow| NewestRun::of(&task.run, task.outcome, task.superseded);
        let rows = tables.jobs.get(&job).map(JobRow::newest_tasks).unwrap_or_default();
        rows.into_iter().map(|(task, row)| (task, state(row))).collect()
    }
}

impl JobRow {
    /// The newest run of each task.
    pub(super) fn newest_tasks(&self) -> BTreeMap<u32, &TaskRow> {
        self.tasks.iter().map(|((_, task), row)| (*task, row)).collect()
    }

    fn tallies(&self) -> Vec<(AttemptNo, AttemptTally)> {
        let mut tallies: BTreeMap<u32, AttemptTally> = BTreeMap::new();
        for ((attempt, _), task) in &self.tasks {
            let tally = tallies.entry(*attempt).or_default();
            let is_running = NewestRun::of(&task.run, task.outcome, task.superseded).is_running;
            tally.running += u32::from(is_running);
            tally.concluded += u32::from(task.outcome.is_some());
            match task.outcome.filter(|_| !task.superseded) {
                Some(TaskOutcome::Done) => tally.done += 1,
                Some(TaskOutcome::Error) => tally.error += 1,
                Some(TaskOutcome::Canceled) => tally.canceled += 1,
                Some(TaskOutcome::Retried) | None => {}
            }
        }
        tallies.into_iter().map(|(attempt, tally)| (no(attempt), tally)).collect()
    }
}
