//! What polls read and write of the tasks of arrays.

use std::collections::HashMap;

use domain::{AttemptNo, ClusterName, Job, JobId, Run, Timestamp};
use serde_json::{Value, json};
use slurm::TaskSet;
use uuid::Uuid;

use super::{lines, readable, select_runs};
use crate::{
    error::Result,
    jobs::{
        documents::run_document,
        rows::{self, select_jobs},
    },
    polls::turns::PollLease,
    store::{Call, Store},
    values::StoredRow,
};

/// A job with an array, as a poll needs it.
#[derive(Debug)]
pub struct ActiveArray {
    pub job: Job,
    /// The runs that are not over.
    pub runs: Vec<(AttemptNo, Run)>,
    /// The tasks that have a run, by attempt.
    pub seen: HashMap<AttemptNo, TaskSet>,
    /// The newest run of each task that another attempt carries again.
    pub earlier: HashMap<u32, Run>,
}

/// A run that a poll has changed.
#[derive(Debug)]
pub struct ObservedTask {
    pub job: JobId,
    pub attempt: AttemptNo,
    pub run: Run,
}

/// What polls need of arrays, and their results.
pub trait TaskPolls {
    /// The jobs with arrays of a cluster that have not ended.
    fn active_arrays(&self, cluster: &ClusterName) -> impl Call<Vec<ActiveArray>>;

    /// Stores what a poll observed of tasks, and makes their jobs due. Runs that are over stay as they are.
    fn record_observed_tasks(
        &self,
        lease: &PollLease,
        changed: &[ObservedTask],
        now: Timestamp,
    ) -> impl Call<()>;
}

impl TaskPolls for Store {
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
        let runs = select_runs!(
            "jobs::tasks::active_arrays runs",
            "",
            "where r.job_id = any($1) and not r.over",
            &ids,
        )
        .fetch_all(&self.pool)
        .await?;
        let earlier = select_runs!(
            "jobs::tasks::active_arrays earlier",
            "distinct on (r.job_id, r.task)",
            "where r.job_id = any($1) and r.superseded order by r.job_id, r.task, r.attempt desc",
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
            arrays.insert(
                job.id,
                ActiveArray { job, runs: Vec::new(), seen: HashMap::new(), earlier: HashMap::new() },
            );
        }
        for (job, attempt, run, ..) in readable(runs) {
            if let Some(array) = arrays.get_mut(&job) {
                array.runs.push((attempt, run));
            }
        }
        for (job, attempt, mut run, ..) in readable(earlier) {
            if let Some(array) = arrays.get_mut(&job) {
                let retried_at = array.job.array.as_ref().map_or(0, |array| array.retried_at);
                if attempt.get() <= retried_at {
                    run.forget_time();
                }
                array.earlier.insert(run.task, run);
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
        let mut tx = self.begin().await?;
        lease.hold(&mut tx).await?;
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
                  waits_again, source, over, usage, over_since) =
                 (excluded.slurm_state, excluded.exit_code, excluded.exit_signal, excluded.nodes, excluded.reason,
                  excluded.partition, excluded.status_files, excluded.progress, excluded.activity,
                  excluded.kill_reason, excluded.queued_since, excluded.estimated_start, excluded.started_at,
                  excluded.ended_at, excluded.missing_since, excluded.requeues, excluded.waits_again,
                  excluded.source, excluded.over, excluded.usage, excluded.over_since)
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
}

fn observed(task: &ObservedTask, now: Timestamp) -> Value {
    let mut document = run_document(task.job, task.attempt, &task.run);
    document["over_since"] = json!(task.run.is_over.then_some(now));
    document
}
