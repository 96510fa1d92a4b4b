//! What was found for the results of a job's tasks.

use std::ops::RangeInclusive;

use domain::JobId;
use slurm::TaskSet;

use crate::{error::Result, store::Store, values::StoredRow};

/// What is stored of one task.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredResults {
    pub task: u32,
    /// Its newest attempt that Slurm has reported.
    pub attempt: u32,
    /// As [`TaskResult::stored`](domain::TaskResult::stored); `None` until its run is concluded.
    pub results: Option<String>,
}

impl Store {
    /// The results of the newest run of each of these tasks. Tasks without a run are missing.
    pub async fn task_results(&self, job: JobId, tasks: RangeInclusive<u32>) -> Result<Vec<StoredResults>> {
        let rows = sqlx::query!(
            "-- jobs::results::task_results
             select distinct on (task) task, attempt, results from runs
             where job_id = $1 and task between $2::bigint and $3::bigint
             order by task, attempt desc",
            job.get(),
            i64::from(*tasks.start()),
            i64::from(*tasks.end()),
        )
        .fetch_all(&self.pool)
        .await?;
        let stored = StoredRow::of("runs", &job);
        rows.into_iter()
            .map(|row| {
                Ok(StoredResults {
                    task: stored.number("task", row.task)?,
                    attempt: stored.number("attempt", row.attempt)?,
                    results: row.results,
                })
            })
            .collect()
    }

    /// The tasks that each attempt of a job carries, newest first.
    pub async fn attempt_tasks(&self, job: JobId) -> Result<Vec<(u32, TaskSet)>> {
        let rows = sqlx::query!(
            "-- jobs::results::attempt_tasks
             select attempt, tasks from slurm_metadata where job_id = $1 order by attempt desc",
            job.get(),
        )
        .fetch_all(&self.pool)
        .await?;
        let stored = StoredRow::of("slurm_metadata", &job);
        rows.iter()
            .map(|row| Ok((stored.number("attempt", row.attempt)?, stored.parse("tasks", &row.tasks)?)))
            .collect()
    }
}
