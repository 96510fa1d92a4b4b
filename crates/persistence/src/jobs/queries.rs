//! Finding jobs: one, or some by their ids.

use std::collections::HashMap;

use domain::{ClusterName, Job, JobId, Owner, Timestamp};

use crate::{
    error::Result,
    jobs::rows::{self, select_jobs},
    store::Store,
    values::count,
};

/// Which jobs a caller may see.
#[derive(Debug, Clone)]
pub enum Viewer {
    All,
    Owner(Owner),
}

impl Viewer {
    /// The owner to filter by; `None` for all.
    pub(crate) fn owner(&self) -> Option<&str> {
        match self {
            Self::All => None,
            Self::Owner(owner) => Some(owner.as_str()),
        }
    }
}

/// One content of a job: a changed job has another version.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct JobVersion {
    number: i64,
    /// After a backup was restored, the same numbers are used again.
    at: Timestamp,
}

impl JobVersion {
    pub fn of(job: &Job) -> Self {
        Self { number: job.version, at: job.last_modified }
    }
}

impl Store {
    pub async fn find_job(&self, id: JobId, viewer: &Viewer) -> Result<Option<Job>> {
        let row = select_jobs!(
            "jobs::queries::find_job",
            "where j.id = $1 and ($2::text is null or j.owner = $2) and j.desired_state <> 'delete'",
            id.get(),
            viewer.owner(),
        )
        .fetch_optional(&self.pool)
        .await?;
        row.map(Job::try_from).transpose()
    }

    /// The newest job whose specification has this results directory.
    pub async fn find_job_of_results_dir(&self, results_dir: &str, viewer: &Viewer) -> Result<Option<Job>> {
        let row = select_jobs!(
            "jobs::queries::find_job_of_results_dir",
            "where j.spec #>> '{work,specs,results_dir}' = $1 and ($2::text is null or j.owner = $2)
               and j.desired_state <> 'delete'
             order by j.created_at desc, j.id desc limit 1",
            results_dir,
            viewer.owner(),
        )
        .fetch_optional(&self.pool)
        .await?;
        row.map(Job::try_from).transpose()
    }

    /// The jobs with these ids; missing and unreadable ones are left out.
    pub async fn find_jobs(&self, ids: &[JobId]) -> Result<HashMap<JobId, Job>> {
        let ids: Vec<_> = ids.iter().map(|id| id.get()).collect();
        let most = i64::try_from(ids.len()).unwrap_or(i64::MAX);
        // The limit and the order force a plan from which the macro infers that the columns of jobs are not null.
        let rows = select_jobs!(
            "jobs::queries::find_jobs",
            "where j.id = any($1) and j.desired_state <> 'delete' order by j.id limit $2",
            &ids,
            most,
        )
        .fetch_all(&self.pool)
        .await?;
        Ok(rows::readable(rows).0.into_iter().map(|job| (job.id, job)).collect())
    }

    /// The versions of the jobs with these ids, without their content; missing ones are left out.
    pub async fn job_versions(&self, ids: &[JobId]) -> Result<HashMap<JobId, JobVersion>> {
        let ids: Vec<_> = ids.iter().map(|id| id.get()).collect();
        let rows = sqlx::query!(
            "-- jobs::queries::job_versions
             select id, version, last_modified from jobs where id = any($1) and desired_state <> 'delete'",
            &ids,
        )
        .fetch_all(&self.pool)
        .await?;
        let version = |at, number| JobVersion { number, at };
        Ok(rows
            .into_iter()
            .map(|row| (JobId::new(row.id), version(row.last_modified, row.version)))
            .collect())
    }

    /// How many jobs of each cluster have not ended: they are stranded if the cluster is no longer configured.
    pub async fn live_jobs_by_cluster(&self) -> Result<HashMap<ClusterName, u64>> {
        let rows = sqlx::query!(
            r#"-- jobs::queries::live_jobs_by_cluster
               select cluster, count(*) as "jobs!" from jobs where phase <> 'ended' group by cluster"#
        )
        .fetch_all(&self.pool)
        .await?;
        Ok(rows.iter().filter_map(|row| Some((row.cluster.parse().ok()?, count(row.jobs)))).collect())
    }
}

#[cfg(test)]
mod versions_tests;
