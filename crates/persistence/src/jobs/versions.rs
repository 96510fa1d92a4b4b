//! Which content a job has, without reading it.

use std::collections::HashMap;

use domain::{Job, JobId, Timestamp};

use crate::{error::StoreError, store::Store};

/// One content of a job: another content of the same job has another one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct JobVersion {
    number: i64,
    /// Numbers that were given since a backup are given again when it is restored.
    at: Timestamp,
}

impl JobVersion {
    pub fn of(job: &Job) -> Self {
        Self { number: job.version, at: job.last_modified }
    }
}

impl Store {
    /// Those of the jobs that are there.
    pub async fn job_versions(&self, ids: &[JobId]) -> Result<HashMap<JobId, JobVersion>, StoreError> {
        let ids: Vec<_> = ids.iter().map(|id| id.get()).collect();
        let rows = sqlx::query!(
            "-- versions::job_versions
             select id, version, last_modified from jobs where id = any($1) and desired_state <> 'delete'",
            &ids,
        )
        .fetch_all(&self.pool)
        .await?;
        let version = |number, at| JobVersion { number, at };
        Ok(rows
            .into_iter()
            .map(|row| (JobId::new(row.id), version(row.version, row.last_modified)))
            .collect())
    }
}

#[cfg(test)]
mod tests;
