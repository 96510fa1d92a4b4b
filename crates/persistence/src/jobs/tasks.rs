//! The runs of jobs with an array: a job may have thousands, and most of its tasks that wait have none.
//!
//! Polls write a run until it is over, and the step that concludes it after that (see [`steps`](super::steps)). A poll only makes the
//! job of a changed run due: its status follows from the counts in its next step.

use std::collections::{HashMap, HashSet};

use domain::{
    ArrayState, Attempt, AttemptNo, AttemptTally, ClusterName, EndedRun, Job, JobId, PastFailure, Run,
    TaskOutcome, Timestamp,
};
use serde_json::{Value, json};
use slurm::TaskSet;
use uuid::Uuid;

use crate::{
    error::Result,
    jobs::{
        documents::{line_documents, run_document},
        leases::Lease,
        rows::{self, select_attempts, select_jobs},
        steps::StepRecord,
    },
    polls::turns::PollLease,
    store::{Call, Store},
    values::{StoredRow, count},
};

/// A job with an array, as a poll needs it.
#[derive(Debug)]
pub struct ActiveArray {
    pub job: Job,
    /// The runs that are not over.
    pub runs: Vec<(AttemptNo, Run)>,
    /// The tasks that have a run, by attempt.
    pub seen: HashMap<AttemptNo, TaskSet>,
}

/// A run that a poll has changed.
#[derive(Debug)]
pub struct ObservedTask {
    pub job: JobId,
    pub attempt: AttemptNo,
    pub run: Run,
}

/// A run that is over and not concluded.
#[derive(Debug)]
pub struct EndedTask {
    pub job: JobId,
    pub attempt: AttemptNo,
    pub ended: EndedRun,
}

/// A run after a step that tried to conclude it.
#[derive(Debug)]
pub struct ConcludedTask {
    pub job: JobId,
    pub attempt: AttemptNo,
    pub run: Run,
    /// `None`: it is tried again.
    pub outcome: Option<TaskOutcome>,
    pub message: String,
}

/// The runs of arrays.
pub trait TaskRecords {
    /// The jobs with arrays of a cluster that have not ended.
    fn active_arrays(&self, cluster: &ClusterName) -> impl Call<Vec<ActiveArray>>;

    /// Stores what a poll observed of tasks, and makes their jobs due. Runs that are over stay as they are.
    fn record_observed_tasks(
        &self,
        lease: &PollLease,
        changed: &[ObservedTask],
        now: Timestamp,
    ) -> impl Call<()>;

    /// The runs of these jobs that are over and not concluded, at most so many.
    fn ended_tasks(&self, jobs: &[Job], most: u32) -> impl Call<Vec<EndedTask>>;

    /// What the runs of these jobs say, by attempt.
    fn task_tallies(&self, jobs: &[JobId]) -> impl Call<HashMap<JobId, Vec<(AttemptNo, AttemptTally)>>>;

    /// Stores concluded runs and their jobs in one transaction, and returns the lease. Returns the jobs that were stored.
    fn record_tended(
        &self,
        lease: &Lease,
        steps: &[StepRecord],
        runs: &[&ConcludedTask],
        now: Timestamp,
    ) -> impl Call<HashSet<JobId>>;
}

struct RunRow {
    job_id: Uuid,
    attempt: i32,
    task: i32,
    slurm_state: Option<String>,
    exit_code: Option<i16>,
    exit_signal: Option<i16>,
    nodes: Option<String>,
    reason: Option<String>,
    partition: Option<String>,
    status_files: String,
    progress: String,
    activity: Option<String>,
    kill_reason: Option<String>,
    queued_since: Option<Timestamp>,
    estimated_start: Option<Timestamp>,
    started_at: Option<Timestamp>,
    ended_at: Option<Timestamp>,
    missing_since: Option<Timestamp>,
    requeues: i32,
    waits_again: bool,
    source: Option<String>,
    over: bool,
    over_since: Option<Timestamp>,
    retries: i64,
}

impl RunRow {
    fn read(self) -> Result<(JobId, AttemptNo, Run, Option<Timestamp>, u32)> {
        let key = format!("{}/{}/{}", self.job_id, self.attempt, self.task);
        let stored = StoredRow::of("runs", &key);
        let run = Run {
            task: stored.number("task", self.task)?,
            state: stored.parse_any("slurm_state", self.slurm_state.as_ref())?,
            exit: stored.exit(self.exit_code, self.exit_signal)?,
            nodes: self.nodes,
            reason: self.reason,
            partition: self.partition,
            status: stored.json("status_files", &self.status_files)?,
            progress: stored.json("progress", &self.progress)?,
            activity: self.activity.and_then(|text| serde_json::from_str(&text).ok()),
            kill_reason: self.kill_reason,
            queued_since: self.queued_since,
            estimated_start: self.estimated_start,
            started_at: self.started_at,
            ended_at: self.ended_at,
            missing_since: self.missing_since,
            requeues: stored.number("requeues", self.requeues)?,
            waits_again: self.waits_again,
            source: stored.parse_any("source", self.source.as_ref())?,
            is_over: self.over,
            results: None,
        };
        Ok((
            JobId::new(self.job_id),
            stored.attempt_no(self.attempt)?,
            run,
            self.over_since,
            count(self.retries),
        ))
    }
}

/// The runs that can be read: one that cannot does not hold up the others.
fn readable(rows: Vec<RunRow>) -> impl Iterator<Item = (JobId, AttemptNo, Run, Option<Timestamp>, u32)> {
    rows.into_iter().filter_map(|row| {
        row.read()
            .inspect_err(|error| tracing::error!(%error, "a stored run cannot be read; it is skipped"))
            .ok()
    })
}

impl TaskRecords for Store {
    async fn active_arrays(&self, cluster: &ClusterName) -> Result<Vec<ActiveArray>> {
        let rows = select_jobs!(
            "jobs::tasks::active_arrays",
            "where j.cluster = $1 and j.array_state is not null and j.phase <> 'ended'",
            cluster.as_str(),
        )
        .fetch_all(&self.pool)
        .await?;
        let (mut jobs, _) = rows::readable(rows);
        if jobs.is_empty() {
            return Ok(Vec::new());
        }
        self.attach_earlier(&mut jobs).await?;
        let ids: Vec<Uuid> = jobs.iter().map(|job| job.id.get()).collect();
        let runs = sqlx::query_as!(
            RunRow,
            r#"-- jobs::tasks::active_arrays runs
               select r.job_id, r.attempt, r.task, r.slurm_state, r.exit_code, r.exit_signal, r.nodes, r.reason, r.partition,
                      r.status_files::text as "status_files!", r.progress::text as "progress!", r.activity::text as activity,
                      r.kill_reason, r.queued_since, r.estimated_start, r.started_at, r.ended_at, r.missing_since,
                      r.requeues, r.waits_again, r.source, r.over, r.over_since, 0::bigint as "retries!"
               from runs r where r.job_id = any($1) and not r.over"#,
            &ids,
        )
        .fetch_all(&self.pool)
        .await?;
        let seen = sqlx::query!(
            r#"-- jobs::tasks::active_arrays seen
               select job_id, attempt, array_agg(task) as "tasks!" from runs where job_id = any($1) group by job_id, attempt"#,
            &ids,
        )
        .fetch_all(&self.pool)
        .await?;
        let mut arrays: HashMap<JobId, ActiveArray> = HashMap::new();
        for job in jobs {
            arrays.insert(job.id, ActiveArray { job, runs: Vec::new(), seen: HashMap::new() });
        }
        for (job, attempt, run, ..) in readable(runs) {
            if let Some(array) = arrays.get_mut(&job) {
                array.runs.push((attempt, run));
            }
        }
        for row in seen {
            let tasks: TaskSet = row.tasks.iter().filter_map(|task| u32::try_from(*task).ok()).collect();
            let key = row.job_id;
            let no = StoredRow::of("runs", &key).attempt_no(row.attempt)?;
            if let Some(array) = arrays.get_mut(&JobId::new(row.job_id)) {
                array.seen.insert(no, tasks);
            }
        }
        let mut arrays: Vec<ActiveArray> = arrays.into_values().collect();
        arrays.sort_unstable_by_key(|array| array.job.id.get());
        Ok(arrays)
    }

    async fn record_observed_tasks(
        &self,
        lease: &PollLease,
        changed: &[ObservedTask],
        now: Timestamp,
    ) -> Result<()> {
        if changed.is_empty() {
            return Ok(());
        }
        let runs: Vec<Value> = changed.iter().map(|task| observed(task, now)).collect();
        let lines = lines(changed.iter().map(|task| (task.job, task.attempt, &task.run)));
        let mut tx = self.pool.begin().await?;
        // The lock keeps the right to poll until the end of this transaction.
        let ours = sqlx::query_scalar!(
            r#"-- jobs::tasks::record_observed_tasks lease
               select true as "ours!" from cluster_polls
               where cluster = $1 and lease_token = $2 and lease_expires_at > now() for share"#,
            lease.cluster.as_str(),
            lease.token,
        )
        .fetch_optional(&mut *tx)
        .await?;
        if ours.is_none() {
            return Err(lease.lost());
        }
        sqlx::query!(
            "-- jobs::tasks::record_observed_tasks
             with u as (
                 select * from jsonb_populate_recordset(null::runs, $1)
             ), old as (
                 select j.id, j.events from jobs j
                 where j.id in (select job_id from u) and j.array_state is not null and j.phase <> 'ended'
                 order by j.id for update
             ), lines as (
                 select l.* from jsonb_populate_recordset(null::job_events, $2) l join old on old.id = l.job_id
             ), counted as (
                 select job_id, count(*) as lines from lines group by job_id
             ), stored as (
                 update jobs j
                 set due_at = now(), observed_at = $3, events = old.events + coalesce(counted.lines, 0),
                     last_modified = $3, version = j.version + 1, updated_by = 'record_poll'
                 from old left join counted on counted.job_id = old.id
                 where j.id = old.id
             ), added_events as (
                 insert into job_events (job_id, seq, at, kind, attempt, file, earlier_run, data)
                 select l.job_id, old.events + l.seq, $3, l.kind, l.attempt, l.file, l.earlier_run, l.data
                 from lines l join old on old.id = l.job_id
                 order by l.job_id, l.seq
             )
             insert into runs as known
             select u.* from u join old on old.id = u.job_id
             on conflict (job_id, attempt, task) do update
             set (slurm_state, exit_code, exit_signal, nodes, reason, partition, status_files, progress, activity,
                  kill_reason, queued_since, estimated_start, started_at, ended_at, missing_since, requeues,
                  waits_again, source, over, over_since) =
                 (excluded.slurm_state, excluded.exit_code, excluded.exit_signal, excluded.nodes, excluded.reason,
                  excluded.partition, excluded.status_files, excluded.progress, excluded.activity,
                  excluded.kill_reason, excluded.queued_since, excluded.estimated_start, excluded.started_at,
                  excluded.ended_at, excluded.missing_since, excluded.requeues, excluded.waits_again,
                  excluded.source, excluded.over, excluded.over_since)
             where not known.over",
            Value::from(runs),
            Value::from(lines),
            now,
        )
        .execute(&mut *tx)
        .await?;
        tx.commit().await?;
        Ok(())
    }

    async fn ended_tasks(&self, jobs: &[Job], most: u32) -> Result<Vec<EndedTask>> {
        let ids: Vec<Uuid> = jobs.iter().map(|job| job.id.get()).collect();
        let rows = sqlx::query_as!(
            RunRow,
            r#"-- jobs::tasks::ended_tasks
               select r.job_id, r.attempt, r.task, r.slurm_state, r.exit_code, r.exit_signal, r.nodes, r.reason, r.partition,
                      r.status_files::text as "status_files!", r.progress::text as "progress!", r.activity::text as activity,
                      r.kill_reason, r.queued_since, r.estimated_start, r.started_at, r.ended_at, r.missing_since,
                      r.requeues, r.waits_again, r.source, r.over, r.over_since,
                      (select count(*) from runs b
                       where b.job_id = r.job_id and b.task = r.task and b.outcome = 'retried'
                         and b.attempt > (j.array_state ->> 'retried_at')::int) as "retries!"
               from runs r join jobs j on j.id = r.job_id
               where r.job_id = any($1) and j.array_state is not null and r.over and r.outcome is null
               order by r.over_since
               limit $2"#,
            &ids,
            i64::from(most),
        )
        .fetch_all(&self.pool)
        .await?;
        let failures: HashMap<JobId, &[PastFailure]> =
            jobs.iter().map(|job| (job.id, job.failures.as_slice())).collect();
        let ended = readable(rows).map(|(job, attempt, run, since, retries)| {
            let known = failures.get(&job).copied().unwrap_or_default();
            let failures = known.iter().filter(|past| past.task == run.task).cloned().collect();
            let since = since.or(run.ended_at).unwrap_or(Timestamp::UNIX_EPOCH);
            EndedTask { job, attempt, ended: EndedRun { run, since, retries, failures } }
        });
        Ok(ended.collect())
    }

    async fn task_tallies(&self, jobs: &[JobId]) -> Result<HashMap<JobId, Vec<(AttemptNo, AttemptTally)>>> {
        let ids: Vec<Uuid> = jobs.iter().map(|job| job.get()).collect();
        let rows = sqlx::query!(
            r#"-- jobs::tasks::task_tallies
               select job_id, attempt,
                      count(*) filter (where outcome is null and started_at is not null and not waits_again) as "running!",
                      count(*) filter (where outcome is not null) as "concluded!",
                      count(*) filter (where outcome = 'done' and not superseded) as "done!",
                      -- A retry of the owner carries all tasks again that were not done.
                      count(*) filter (where outcome = 'error' and attempt > retried_at) as "error!",
                      count(*) filter (where outcome = 'canceled' and attempt > retried_at) as "canceled!"
               from (select r.job_id, r.attempt, r.outcome, r.started_at, r.waits_again, r.superseded,
                            coalesce((j.array_state ->> 'retried_at')::int, 0) as retried_at
                     from runs r join jobs j on j.id = r.job_id where r.job_id = any($1)) r
               group by job_id, attempt"#,
            &ids,
        )
        .fetch_all(&self.pool)
        .await?;
        let mut tallies: HashMap<JobId, Vec<(AttemptNo, AttemptTally)>> = HashMap::new();
        for row in rows {
            let no = StoredRow::of("runs", &row.job_id).attempt_no(row.attempt)?;
            let tally = AttemptTally {
                running: count(row.running),
                concluded: count(row.concluded),
                done: count(row.done),
                error: count(row.error),
                canceled: count(row.canceled),
            };
            tallies.entry(JobId::new(row.job_id)).or_default().push((no, tally));
        }
        Ok(tallies)
    }

    async fn record_tended(
        &self,
        lease: &Lease,
        steps: &[StepRecord],
        runs: &[&ConcludedTask],
        now: Timestamp,
    ) -> Result<HashSet<JobId>> {
        let documents: Vec<Value> = runs.iter().map(|task| concluded(task)).collect();
        let lines = lines(runs.iter().map(|task| (task.job, task.attempt, &task.run)));
        let mut tx = self.pool.begin().await?;
        sqlx::query!(
            "-- jobs::tasks::record_tended
             with u as (
                 select * from jsonb_populate_recordset(null::runs, $1)
             ), old as (
                 select j.id, j.events from jobs j
                 where j.id in (select job_id from u) and j.lease_token = $2 and j.lease_expires_at > now()
                 order by j.id for update
             ), lines as (
                 select l.* from jsonb_populate_recordset(null::job_events, $3) l join old on old.id = l.job_id
             ), counted as (
                 select job_id, count(*) as lines from lines group by job_id
             ), stored as (
                 update jobs j set events = old.events + counted.lines
                 from old join counted on counted.job_id = old.id
                 where j.id = old.id
             ), added_events as (
                 insert into job_events (job_id, seq, at, kind, attempt, file, earlier_run, data)
                 select l.job_id, old.events + l.seq, $4, l.kind, l.attempt, l.file, l.earlier_run, l.data
                 from lines l join old on old.id = l.job_id
                 order by l.job_id, l.seq
             )
             update runs r
             set (slurm_state, exit_code, exit_signal, status_files, progress, started_at, ended_at, requeues, outcome,
                  message, superseded) =
                 (u.slurm_state, u.exit_code, u.exit_signal, u.status_files, u.progress, u.started_at, u.ended_at,
                  u.requeues, u.outcome, u.message, u.superseded)
             from u join old on old.id = u.job_id
             where (r.job_id, r.attempt, r.task) = (u.job_id, u.attempt, u.task) and r.over and r.outcome is null",
            Value::from(documents),
            lease.token,
            Value::from(lines),
            now,
        )
        .execute(&mut *tx)
        .await?;
        let stored = self.record_together(&mut tx, lease, steps, true, now).await?;
        // The result of a job that was not stored is dropped, so its runs are concluded again.
        if stored.len() < steps.len() {
            tx.rollback().await?;
            return Ok(HashSet::new());
        }
        tx.commit().await?;
        Ok(stored.into_iter().map(JobId::new).collect())
    }
}

/// The newest run of a task.
#[derive(Debug)]
pub struct TaskRun {
    pub attempt: AttemptNo,
    pub run: Run,
    pub outcome: Option<TaskOutcome>,
    pub message: Option<String>,
    /// The Slurm array, and the task's index in it.
    place: Option<(i64, u32)>,
}

impl TaskRun {
    /// The task's id in Slurm.
    pub fn slurm_job_id(&self) -> Option<String> {
        self.place.map(|(array, index)| format!("{array}_{index}"))
    }
}

impl Store {
    /// The newest runs of these tasks; those without a run are missing.
    pub async fn newest_runs(&self, job: JobId, tasks: &[u32]) -> Result<HashMap<u32, TaskRun>> {
        let numbers: Vec<i32> = tasks.iter().filter_map(|task| i32::try_from(*task).ok()).collect();
        let rows = sqlx::query!(
            r#"-- jobs::tasks::newest_runs
               select distinct on (r.task) r.attempt, r.task, r.slurm_state, r.exit_code, r.exit_signal, r.nodes,
                      r.started_at, r.ended_at, r.waits_again, r.over, r.outcome, r.message, a.slurm_job_id, a.base
               from runs r join slurm_metadata a on a.job_id = r.job_id and a.attempt = r.attempt
               where r.job_id = $1 and r.task = any($2)
               order by r.task, r.attempt desc"#,
            job.get(),
            &numbers,
        )
        .fetch_all(&self.pool)
        .await?;
        let mut runs = HashMap::new();
        for row in rows {
            let key = format!("{job}/{}/{}", row.attempt, row.task);
            let stored = StoredRow::of("runs", &key);
            let task: u32 = stored.number("task", row.task)?;
            let run = Run {
                task,
                state: stored.parse_any("slurm_state", row.slurm_state.as_ref())?,
                exit: stored.exit(row.exit_code, row.exit_signal)?,
                nodes: row.nodes,
                started_at: row.started_at,
                ended_at: row.ended_at,
                waits_again: row.waits_again,
                is_over: row.over,
                ..Run::default()
            };
            let base: u32 = stored.number("base", row.base)?;
            let newest = TaskRun {
                attempt: stored.attempt_no(row.attempt)?,
                run,
                outcome: stored.parse_any("outcome", row.outcome.as_ref())?,
                message: row.message,
                place: row.slurm_job_id.map(|array| (array, task.saturating_sub(base))),
            };
            runs.insert(task, newest);
        }
        Ok(runs)
    }

    /// The array of a job that its owner retries: all tasks that are not done go again.
    pub(crate) async fn retried_array(&self, job: &Job) -> Result<Option<ArrayState>> {
        if job.array.is_none() {
            return Ok(None);
        }
        let done = sqlx::query_scalar!(
            "-- jobs::tasks::retried_array
             select task from runs where job_id = $1 and outcome = 'done'",
            job.id.get(),
        )
        .fetch_all(&self.pool)
        .await?;
        let done: TaskSet = done.into_iter().filter_map(|task| u32::try_from(task).ok()).collect();
        Ok(job.retried_array(&done))
    }

    /// Loads the attempts in Slurm before the newest one of each job with an array.
    pub(crate) async fn attach_earlier(&self, jobs: &mut [Job]) -> Result<()> {
        let ids: Vec<Uuid> = jobs.iter().filter(|job| job.array.is_some()).map(|job| job.id.get()).collect();
        if ids.is_empty() {
            return Ok(());
        }
        let rows = select_attempts!(
            "jobs::tasks::attach_earlier",
            "a.outcome is null and a.attempt <> j.attempt and a.slurm_job_id is not null",
            "where j.id = any($1) and a.attempt is not null order by a.attempt",
            &ids,
        )
        .fetch_all(&self.pool)
        .await?;
        let mut earlier: HashMap<JobId, Vec<Attempt>> = HashMap::new();
        for job in rows::readable(rows).0 {
            if let Some(attempt) = job.attempt {
                earlier.entry(job.id).or_default().push(attempt);
            }
        }
        for job in jobs {
            if let Some(array) = &mut job.array {
                array.earlier = earlier.remove(&job.id).unwrap_or_default();
            }
        }
        Ok(())
    }
}

fn observed(task: &ObservedTask, now: Timestamp) -> Value {
    let mut document = run_document(task.job, task.attempt, &task.run);
    document["over_since"] = json!(task.run.is_over.then_some(now));
    document
}

fn concluded(task: &ConcludedTask) -> Value {
    let mut document = run_document(task.job, task.attempt, &task.run);
    document["outcome"] = json!(task.outcome);
    document["message"] = json!(task.outcome.map(|_| task.message.as_str()));
    document["superseded"] = json!(task.outcome == Some(TaskOutcome::Retried));
    document
}

/// The events of several runs of each job, numbered from 1 for each job.
fn lines<'a>(runs: impl Iterator<Item = (JobId, AttemptNo, &'a Run)>) -> Vec<Value> {
    let mut numbers: HashMap<JobId, u64> = HashMap::new();
    let mut lines = Vec::new();
    for (job, attempt, run) in runs {
        for mut line in line_documents(job, attempt, run) {
            let number = numbers.entry(job).or_default();
            *number += 1;
            line["seq"] = json!(number);
            lines.push(line);
        }
    }
    lines
}
