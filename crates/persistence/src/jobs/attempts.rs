//! All attempts of a job.

use domain::{Attempt, Job, JobId};

use crate::{error::StoreError, jobs::rows::select_attempts, store::Store};

impl Store {
    /// Every attempt of a job, oldest first.
    pub async fn attempts(&self, job: JobId) -> Result<Vec<Attempt>, StoreError> {
        let rows =
            select_attempts!("attempts::attempts", "true", "where j.id = $1 order by a.attempt", job.get())
                .fetch_all(&self.pool)
                .await?;
        let attempts = rows.into_iter().map(|row| Job::try_from(row).map(|job| job.attempt));
        attempts.filter_map(Result::transpose).collect()
    }

    /// The batch script of an attempt as it was submitted; of the newest that has one, if none is named.
    pub async fn script(&self, job: JobId, attempt: Option<u32>) -> Result<Option<String>, StoreError> {
        let script = sqlx::query_scalar!(
            r#"-- attempts::script
               select script as "script!" from slurm_metadata
               where job_id = $1 and script is not null and ($2::int is null or attempt = $2)
               order by attempt desc
               limit 1"#,
            job.get(),
            attempt.map(|number| i32::try_from(number).unwrap_or(i32::MAX)),
        )
        .fetch_optional(&self.pool)
        .await?;
        Ok(script)
    }
}
