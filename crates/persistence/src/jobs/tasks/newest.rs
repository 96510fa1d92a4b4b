//! The newest runs of tasks, as callers ask for them.

use std::collections::HashMap;

use domain::{AttemptNo, Job, JobId, NewestRun, Run};
use slurm::SlurmJobId;

use crate::{error::Result, store::Store, values::StoredRow};

/// The newest run of a task.
#[derive(Debug)]
pub struct TaskRun {
    pub attempt: AttemptNo,
    pub run: Run,
    /// What it says of the task.
    pub state: NewestRun,
    pub message: Option<String>,
    pub slurm_id: Option<SlurmJobId>,
    /// The task's index in the Slurm array.
    pub index: u32,
}

impl TaskRun {
    /// The run of a job without an array; `None` before its first attempt.
    pub fn of(job: &Job) -> Option<Self> {
        let attempt = job.attempt.as_ref()?;
        Some(Self {
            attempt: attempt.no,
            state: NewestRun::of(&job.run, None, false),
            run: job.run.clone(),
            message: Some(job.message.clone()),
            slurm_id: attempt.slurm_id,
            index: 0,
        })
    }
}

impl Store {
    /// What the newest run of each task of a job says; tasks without a run are missing.
    pub async fn newest_states(&self, job: JobId) -> Result<HashMap<u32, NewestRun>> {
        let rows = sqlx::query!(
            r#"-- jobs::tasks::newest_states
               select distinct on (task) task, outcome, superseded,
                      outcome is null and started_at is not null and not waits_again as "is_running!"
               from runs where job_id = $1 order by task, attempt desc"#,
            job.get(),
        )
        .fetch_all(&self.pool)
        .await?;
        let read = |(task, outcome, is_superseded, is_running): (i32, Option<String>, bool, bool)| {
            let stored = StoredRow::of("runs", &job);
            let outcome = stored.parse_any("outcome", outcome.as_ref())?;
            Ok((stored.number("task", task)?, NewestRun { is_running, outcome, is_superseded }))
        };
        rows.into_iter().map(|row| read((row.task, row.outcome, row.superseded, row.is_running))).collect()
    }

    /// The newest runs of these tasks; those without a run are missing.
    pub async fn newest_runs(&self, job: JobId, tasks: &[u32]) -> Result<HashMap<u32, TaskRun>> {
        let numbers: Vec<i32> = tasks.iter().filter_map(|task| i32::try_from(*task).ok()).collect();
        let rows = sqlx::query!(
            r#"-- jobs::tasks::newest_runs
               select distinct on (r.task) r.attempt, r.task, r.slurm_state, r.exit_code, r.exit_signal, r.nodes,
                      r.started_at, r.ended_at, r.waits_again, r.over, r.outcome, r.superseded, r.message,
                      a.slurm_job_id, a.base
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
            let outcome = stored.parse_any("outcome", row.outcome.as_ref())?;
            let base: u32 = stored.number("base", row.base)?;
            let newest = TaskRun {
                attempt: stored.attempt_no(row.attempt)?,
                state: NewestRun::of(&run, outcome, row.superseded),
                run,
                message: row.message,
                slurm_id: stored.slurm_id(row.slurm_job_id)?,
                index: task.saturating_sub(base),
            };
            runs.insert(task, newest);
        }
        Ok(runs)
    }
}
