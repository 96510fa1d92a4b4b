//! Pages of jobs, newest first.

use domain::{ClusterName, Job, JobId, Status, Timestamp};

use crate::{
    error::StoreError,
    jobs::{
        rows::{self, select_jobs},
        stored::{Viewer, label_filter},
    },
    store::Store,
};

/// Which jobs a page holds.
#[derive(Debug, Clone, Default)]
pub struct JobFilter {
    pub status: Option<Status>,
    pub cluster: Option<ClusterName>,
    pub network_arch: Option<String>,
    pub action: Option<String>,
    pub labels: Vec<(String, String)>,
    /// Only jobs that were accepted after this moment.
    pub created_after: Option<Timestamp>,
    /// Only jobs that were accepted before this moment.
    pub created_before: Option<Timestamp>,
    /// The last job of the page before: a page never shifts when jobs are added.
    pub before: Option<(Timestamp, JobId)>,
    /// The most jobs of the page.
    pub limit: u32,
}

/// A page of jobs, newest first.
#[derive(Debug, Clone)]
pub struct JobPage {
    pub jobs: Vec<Job>,
    /// Where the next page begins, behind this job; none when there is none.
    pub next: Option<(Timestamp, JobId)>,
}

impl Store {
    pub async fn list_jobs(&self, viewer: &Viewer, filter: &JobFilter) -> Result<JobPage, StoreError> {
        let (before_time, before_id) = filter.before.map(|(time, id)| (time, id.get())).unzip();
        let limit = usize::try_from(filter.limit).unwrap_or(usize::MAX);
        let mut rows = select_jobs!(
            "listing::list_jobs",
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
             order by j.created_at desc, j.id desc
             limit $11",
            viewer.owner(),
            filter.status.map(<&str>::from),
            filter.cluster.as_ref().map(ClusterName::as_str),
            filter.network_arch.as_deref(),
            filter.action.as_deref(),
            label_filter(&filter.labels),
            before_time,
            before_id,
            filter.created_after,
            filter.created_before,
            // One more than is shown: its presence says that there is another page.
            i64::from(filter.limit) + 1,
        )
        .fetch_all(&self.pool)
        .await?;
        let more = rows.len() > limit;
        rows.truncate(limit);
        // Taken from the rows: a job that cannot be read must not end the list.
        let last = rows.last().map(|row| (row.created_at, JobId::new(row.id)));
        Ok(JobPage { jobs: rows::readable(rows).0, next: last.filter(|_| more) })
    }
}

#[cfg(test)]
mod tests;
