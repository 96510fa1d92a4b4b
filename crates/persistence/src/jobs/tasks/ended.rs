//! What the steps that tend arrays read and write of their tasks.

use std::collections::{HashMap, HashSet};

use domain::{
    AttemptNo, AttemptTally, EndedRun, Job, JobId, PastFailure, Run, TaskEnding, TaskOutcome, Timestamp,
    Transition,
};
use serde_json::{Value, json};
use slurm::TaskSet;
use uuid::Uuid;

use super::{lines, readable, select_runs};
use crate::{
    error::Result,
    jobs::{documents::run_document, leases::Lease},
    statements::retry_rolled_back,
    store::{Call, Store},
    values::{StoredRow, count},
};

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
    pub ending: TaskEnding,
}

/// What a step that tends arrays needs, and its result.
pub trait TaskRecords {
    /// The runs of these jobs that are over and not concluded, at most so many.
    fn ended_tasks(&self, jobs: &[Job], most: u32) -> impl Call<Vec<EndedTask>>;

    /// The tasks of these jobs whose newest run is concluded.
    fn concluded_tasks(&self, jobs: &[JobId]) -> impl Call<HashMap<JobId, TaskSet>>;

    /// The runs of these jobs that are not over and may need something: they have reported how they ended, have a reason to be killed,
    /// or have a pending reason in an attempt that excludes nodes.
    fn tended_runs(&self, jobs: &[JobId]) -> impl Call<Vec<(JobId, AttemptNo, Run)>>;

    /// What the runs of these jobs say, by attempt.
    fn task_tallies(&self, jobs: &[JobId]) -> impl Call<HashMap<JobId, Vec<(AttemptNo, AttemptTally)>>>;

    /// Stores concluded runs and their jobs in one transaction, and returns the lease. Returns the jobs that were stored.
    fn record_tended(
        &self,
        lease: &Lease,
        steps: &[Transition],
        runs: &[&ConcludedTask],
        now: Timestamp,
    ) -> impl Call<HashSet<JobId>>;
}

impl TaskRecords for Store {
    async fn ended_tasks(&self, jobs: &[Job], most: u32) -> Result<Vec<EndedTask>> {
        let ids: Vec<Uuid> = jobs.iter().map(|job| job.id.get()).collect();
        let rows = select_runs!(
            "jobs::tasks::ended_tasks",
            "",
            "join jobs j on j.id = r.job_id
             where r.job_id = any($1) and j.array_state is not null and r.over and r.outcome is null
             order by r.over_since
             limit $2",
            &ids,
            i64::from(most),
        )
        .fetch_all(&self.pool)
        .await?;
        let failures: HashMap<JobId, &[PastFailure]> =
            jobs.iter().map(|job| (job.id, job.failures.as_slice())).collect();
        let ended = readable(rows).map(|(job, attempt, run, since)| {
            let known = failures.get(&job).copied().unwrap_or_default();
            let failures = known.iter().filter(|past| past.task == run.task).cloned().collect();
            let since = since.or(run.ended_at).unwrap_or(Timestamp::UNIX_EPOCH);
            EndedTask { job, attempt, ended: EndedRun { run, since, failures } }
        });
        Ok(ended.collect())
    }

    async fn concluded_tasks(&self, jobs: &[JobId]) -> Result<HashMap<JobId, TaskSet>> {
        let ids: Vec<Uuid> = jobs.iter().map(|job| job.get()).collect();
        let rows = sqlx::query!(
            r#"-- jobs::tasks::concluded_tasks
               select job_id, array_agg(task) as "tasks!"
               from (select distinct on (job_id, task) job_id, task, outcome from runs where job_id = any($1)
                     order by job_id, task, attempt desc) newest
               where outcome is not null group by job_id"#,
            &ids,
        )
        .fetch_all(&self.pool)
        .await?;
        let tasks = |tasks: Vec<i32>| tasks.into_iter().filter_map(|task| u32::try_from(task).ok()).collect();
        Ok(rows.into_iter().map(|row| (JobId::new(row.job_id), tasks(row.tasks))).collect())
    }

    async fn tended_runs(&self, jobs: &[JobId]) -> Result<Vec<(JobId, AttemptNo, Run)>> {
        let ids: Vec<Uuid> = jobs.iter().map(|job| job.get()).collect();
        let rows = select_runs!(
            "jobs::tasks::tended_runs",
            "",
            "join slurm_metadata a on a.job_id = r.job_id and a.attempt = r.attempt
             where r.job_id = any($1) and not r.over
               and (r.kill_reason is not null or r.progress ->> 'final_status_at' is not null
                    or r.reason is not null and a.excluded_nodes <> '{}')",
            &ids,
        )
        .fetch_all(&self.pool)
        .await?;
        Ok(readable(rows).map(|(job, attempt, run, ..)| (job, attempt, run)).collect())
    }

    async fn task_tallies(&self, jobs: &[JobId]) -> Result<HashMap<JobId, Vec<(AttemptNo, AttemptTally)>>> {
        let ids: Vec<Uuid> = jobs.iter().map(|job| job.get()).collect();
        let rows = sqlx::query!(
            r#"-- jobs::tasks::task_tallies
               select job_id, attempt,
                      count(*) filter (where outcome is null and started_at is not null and not waits_again) as "running!",
                      count(*) filter (where outcome is not null) as "concluded!",
                      count(*) filter (where outcome = 'done' and not superseded) as "done!",
                      count(*) filter (where outcome = 'error' and not superseded) as "error!",
                      count(*) filter (where outcome = 'canceled' and not superseded) as "canceled!"
               from runs where job_id = any($1) group by job_id, attempt"#,
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
        steps: &[Transition],
        runs: &[&ConcludedTask],
        now: Timestamp,
    ) -> Result<HashSet<JobId>> {
        // A job that ends, and one that waits for it, each wake or cancel the other.
        retry_rolled_back(|| self.record_tended_together(lease, steps, runs, now)).await
    }
}

impl Store {
    async fn record_tended_together(
        &self,
        lease: &Lease,
        steps: &[Transition],
        runs: &[&ConcludedTask],
        now: Timestamp,
    ) -> Result<HashSet<JobId>> {
        let documents: Vec<Value> = runs.iter().map(|task| concluded(task)).collect();
        let lines = lines(runs.iter().map(|task| (task.job, task.attempt, &task.ending.run)));
        let mut tx = self.begin().await?;
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
                  message, superseded, results, failure) =
                 (u.slurm_state, u.exit_code, u.exit_signal, u.status_files, u.progress, u.started_at, u.ended_at,
                  u.requeues, u.outcome, u.message, u.superseded, u.results, u.failure)
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

fn concluded(ConcludedTask { job, attempt, ending }: &ConcludedTask) -> Value {
    let mut document = run_document(*job, *attempt, &ending.run);
    document["outcome"] = json!(ending.outcome);
    document["message"] = json!(ending.outcome.map(|_| ending.message.as_str()));
    document["superseded"] = json!(ending.outcome == Some(TaskOutcome::Retried));
    document
}
