//! Why the runs of a job failed.

use domain::{Failure, JobId};

use crate::{error::Result, store::Store, values::StoredRow};

/// What is stored of one run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunFailure {
    pub task: u32,
    pub attempt: u32,
    /// `None`: it was not concluded, or did not fail.
    pub failure: Option<Failure>,
}

impl Store {
    /// Why the newest run of a task failed, or its run in one attempt. Without a task, that of the first task whose newest run failed;
    /// `None` if there is no such run.
    pub async fn run_failure(
        &self,
        job: JobId,
        attempt: Option<u32>,
        task: Option<u32>,
    ) -> Result<Option<RunFailure>> {
        let row = sqlx::query!(
            r#"-- jobs::failures::run_failure
               select task as "task!", attempt as "attempt!", failure
               from (select distinct on (task) task, attempt, failure::text as failure from runs
                     where job_id = $1 and attempt = coalesce($2::bigint, attempt) and task = coalesce($3::bigint, task)
                     order by task, attempt desc) newest
               order by failure is null, task limit 1"#,
            job.get(),
            attempt.map(i64::from),
            task.map(i64::from),
        )
        .fetch_optional(&self.pool)
        .await?;
        let stored = StoredRow::of("runs", &job);
        let read = |row: (i32, i32, Option<String>)| {
            Ok(RunFailure {
                task: stored.number("task", row.0)?,
                attempt: stored.number("attempt", row.1)?,
                failure: row.2.as_deref().map(|text| stored.json("failure", text)).transpose()?,
            })
        };
        row.map(|row| read((row.task, row.attempt, row.failure))).transpose()
    }
}
