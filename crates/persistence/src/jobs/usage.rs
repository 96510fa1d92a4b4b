//! What a job used: of its runs, as their batch scripts measured it, and of its Slurm jobs, as Slurm accounts for them.

use domain::{AttemptNo, JobId, Usage};

use crate::{error::Result, store::Store, values::StoredRow};

/// What Slurm accounts for, of all Slurm jobs of a job that have ended.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct JobAccount {
    /// How often nodes were held.
    pub runs: u64,
    /// For how many seconds in all.
    pub seconds: u64,
    pub gpu_seconds: u64,
    /// The time for which processors were held, and that of these in which they worked, as far as Slurm knows it.
    pub cpu_seconds: u64,
    pub cpu_seconds_used: Option<u64>,
    /// The most memory of one task of one run, in MiB.
    pub most_memory: Option<u32>,
}

impl Store {
    /// What the newest run of a task used that has measured it, or that of one attempt.
    pub async fn usage(
        &self,
        id: JobId,
        task: u32,
        attempt: Option<u32>,
    ) -> Result<Option<(AttemptNo, Usage)>> {
        let row = sqlx::query!(
            r#"-- jobs::usage::usage
               select attempt, usage::text as "usage!" from runs
               where job_id = $1 and task = $2 and ($3::bigint is null or attempt = $3) and usage is not null
               order by attempt desc limit 1"#,
            id.get(),
            i64::from(task) as _,
            attempt.map(i64::from),
        )
        .fetch_optional(&self.pool)
        .await?;
        let Some(row) = row else { return Ok(None) };
        let key = id.get();
        let stored = StoredRow::of("runs", &key);
        // One that cannot be read is measured again.
        let usage = serde_json::from_str(&row.usage).ok();
        let attempt = stored.attempt_no(row.attempt)?;
        Ok(usage.map(|usage| (attempt, usage)))
    }

    /// What Slurm accounts for, of all its attempts or of one.
    pub async fn job_account(&self, id: JobId, attempt: Option<u32>) -> Result<JobAccount> {
        let row = sqlx::query!(
            r#"-- jobs::usage::job_account
               select count(*) as "runs!", coalesce(sum(elapsed), 0)::bigint as "seconds!",
                      coalesce(sum(elapsed * gpus), 0)::bigint as "gpu_seconds!",
                      coalesce(sum(elapsed * cpus), 0)::bigint as "cpu_seconds!",
                      sum(cpu_seconds)::bigint as cpu_seconds_used, max(most_memory) as most_memory
               from allocations where job_id = $1 and ($2::bigint is null or attempt = $2)"#,
            id.get(),
            attempt.map(i64::from),
        )
        .fetch_one(&self.pool)
        .await?;
        let number = |number: i64| u64::try_from(number).unwrap_or_default();
        Ok(JobAccount {
            runs: number(row.runs),
            seconds: number(row.seconds),
            gpu_seconds: number(row.gpu_seconds),
            cpu_seconds: number(row.cpu_seconds),
            cpu_seconds_used: row.cpu_seconds_used.map(number),
            most_memory: row.most_memory.and_then(|mib| u32::try_from(mib).ok()),
        })
    }
}
