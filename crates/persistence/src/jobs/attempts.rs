//! All attempts of a job. The newest one comes with the job.

use std::collections::HashMap;

use domain::{Attempt, AttemptNo, AttemptPlace, Job, JobId, Run};
use slurm::{SlurmJobId, TaskSet};
use uuid::Uuid;

use crate::{error::Result, jobs::rows::select_attempts, store::Store, values::StoredRow};

impl Store {
    /// Every attempt of a job with its run, oldest first.
    pub async fn attempts(&self, job: JobId) -> Result<Vec<(Attempt, Run)>> {
        let rows = select_attempts!(
            "jobs::attempts::attempts",
            "true",
            "where j.id = $1 order by a.attempt",
            job.get()
        )
        .fetch_all(&self.pool)
        .await?;
        let attempts =
            rows.into_iter().map(|row| Job::try_from(row).map(|job| Some((job.attempt?, job.run))));
        attempts.filter_map(Result::transpose).collect()
    }

    /// The Slurm ids of all attempts but the newest, oldest first. Jobs with none are missing.
    pub async fn earlier_slurm_ids(&self, jobs: &[JobId]) -> Result<HashMap<JobId, Vec<SlurmJobId>>> {
        let jobs: Vec<Uuid> = jobs.iter().map(|job| job.get()).collect();
        let rows = sqlx::query!(
            r#"-- jobs::attempts::earlier_slurm_ids
               select a.job_id, a.slurm_job_id as "id!" from slurm_metadata a join jobs j on j.id = a.job_id
               where a.job_id = any($1) and a.attempt < j.attempt and a.slurm_job_id is not null order by a.attempt"#,
            &jobs,
        )
        .fetch_all(&self.pool)
        .await?;
        let mut ids: HashMap<JobId, Vec<SlurmJobId>> = HashMap::new();
        for row in rows {
            let id = u32::try_from(row.id).ok().and_then(SlurmJobId::new);
            ids.entry(JobId::new(row.job_id)).or_default().extend(id);
        }
        Ok(ids)
    }

    /// Where the files of an attempt are, or those of a task in it; `None` when the job has no such attempt, or the attempt does not
    /// carry the task.
    pub async fn find_attempt_place(
        &self,
        job: JobId,
        no: AttemptNo,
        task: Option<u32>,
    ) -> Result<Option<AttemptPlace>> {
        let row = sqlx::query!(
            "-- jobs::attempts::find_attempt_place
             select token, job_dir, slurm_job_id, tasks, base from slurm_metadata where job_id = $1 and attempt = $2::bigint",
            job.get(),
            i64::from(no.get()),
        )
        .fetch_optional(&self.pool)
        .await?;
        let Some(row) = row else { return Ok(None) };
        let key = format!("{job}/{no}");
        let stored = StoredRow::of("slurm_metadata", &key);
        let (tasks, base): (TaskSet, u32) =
            (stored.parse("tasks", &row.tasks)?, stored.number("base", row.base)?);
        if task.is_some_and(|task| !tasks.contains(task)) {
            return Ok(None);
        }
        Ok(Some(AttemptPlace {
            no,
            token: stored.parse("token", &row.token)?,
            job_dir: stored.parse("job_dir", &row.job_dir)?,
            slurm_id: stored.slurm_id(row.slurm_job_id)?,
            index: task.map(|task| task.saturating_sub(base)),
        }))
    }

    /// The batch script of an attempt as it was submitted; without a number, of the newest attempt that has one.
    pub async fn script(&self, job: JobId, attempt: Option<u32>) -> Result<Option<String>> {
        let script = sqlx::query_scalar!(
            r#"-- jobs::attempts::script
               select script as "script!" from slurm_metadata
               where job_id = $1 and script is not null and ($2::bigint is null or attempt = $2)
               order by attempt desc
               limit 1"#,
            job.get(),
            attempt.map(i64::from),
        );
        Ok(script.fetch_optional(&self.pool).await?)
    }
}
