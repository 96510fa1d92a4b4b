//! Finding jobs: one, some by their ids, or pages of them.

use std::collections::HashMap;

use domain::{ClusterName, Job, JobId, Owner, Status, Timestamp};
use serde_json::{Map, Value};

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

/// Which jobs a page holds.
#[derive(Debug, Clone, Default)]
pub struct JobFilter {
    pub status: Option<Status>,
    /// The jobs of the service that convert images, instead of those of callers.
    pub conversions: bool,
    pub cluster: Option<ClusterName>,
    pub network_arch: Option<String>,
    pub action: Option<String>,
    pub labels: Vec<(String, String)>,
    /// Only jobs that were accepted after this time.
    pub created_after: Option<Timestamp>,
    /// Only jobs that were accepted before this time.
    pub created_before: Option<Timestamp>,
    /// The last job of the previous page: new jobs do not shift a page.
    pub before: Option<(Timestamp, JobId)>,
    /// The maximum number of jobs on the page.
    pub limit: u32,
}

/// A page of jobs, newest first.
#[derive(Debug, Clone)]
pub struct JobPage {
    pub jobs: Vec<Job>,
    /// The next page begins after this job; `None` on the last page.
    pub next: Option<(Timestamp, JobId)>,
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

    pub async fn list_jobs(&self, viewer: &Viewer, filter: &JobFilter) -> Result<JobPage> {
        let (before_time, before_id) = filter.before.map(|(time, id)| (time, id.get())).unzip();
        let limit = usize::try_from(filter.limit).unwrap_or(usize::MAX);
        let mut rows = select_jobs!(
            "jobs::queries::list_jobs",
            "where ($1::text is null or j.owner = $1)
               and ($2::text is null or j.status = $2)
               and ($3::text is null or j.cluster = $3)
               and ($4::text is null or j.network_arch = $4)
               and ($5::text is null or j.action = $5)
               and ($6::jsonb = '{}' or j.labels @> $6)
               and j.desired_state <> 'delete'
               and ($7::timestamptz is null or (j.created_at, j.id) < ($7, $8::uuid))
               and ($9::timestamptz is null or j.created_at > $9)
               and ($10::timestamptz is null or j.created_at < $10)
               and (j.owner = '') = $12
             order by j.created_at desc, j.id desc
             limit $11",
            viewer.owner(),
            filter.status.map(<&str>::from),
            filter.cluster.as_ref().map(ClusterName::as_str),
            filter.network_arch.as_deref(),
            filter.action.as_deref(),
            contained_labels(&filter.labels),
            before_time,
            before_id,
            filter.created_after,
            filter.created_before,
            // One more than the page shows: its presence means that there is another page.
            i64::from(filter.limit) + 1,
            filter.conversions,
        )
        .fetch_all(&self.pool)
        .await?;
        let more = rows.len() > limit;
        rows.truncate(limit);
        // From the rows: an unreadable job does not end the list.
        let last = rows.last().map(|row| (row.created_at, JobId::new(row.id)));
        Ok(JobPage { jobs: rows::readable(rows).0, next: last.filter(|_| more) })
    }
}

/// A JSON document that the labels of a job must contain.
fn contained_labels(labels: &[(String, String)]) -> Value {
    labels.iter().map(|(key, value)| (key.clone(), value.clone().into())).collect::<Map<_, _>>().into()
}

#[cfg(test)]
mod listing_tests;
#[cfg(test)]
mod versions_tests;
