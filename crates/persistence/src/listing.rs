//! Pages of jobs, newest first.

use domain::{ClusterName, Job, JobId, Status, Timestamp};

use crate::{
    error::StoreError,
    jobs::{Viewer, label_filter},
    rows::{self, select_jobs},
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
    /// The last job of the page before: a page never shifts when jobs are added.
    pub before: Option<(Timestamp, JobId)>,
    pub limit: u32,
}

impl Store {
    pub async fn list_jobs(&self, viewer: &Viewer, filter: &JobFilter) -> Result<Vec<Job>, StoreError> {
        let (before_time, before_id) = filter.before.map(|(time, id)| (time, id.get())).unzip();
        let rows = select_jobs!(
            "listing::list_jobs",
            "where ($1::text is null or j.owner = $1)
               and ($2::text is null or j.status = $2)
               and ($3::text is null or j.cluster = $3)
               and ($4::text is null or j.network_arch = $4)
               and ($5::text is null or j.action = $5)
               and ($6::jsonb = '{}' or j.labels @> $6)
               and j.wanted <> 'delete'
               and ($7::timestamptz is null or (j.created_at, j.id) < ($7, $8::uuid))
             order by j.created_at desc, j.id desc
             limit $9",
            viewer.owner(),
            filter.status.map(<&str>::from),
            filter.cluster.as_ref().map(ClusterName::as_str),
            filter.network_arch.as_deref(),
            filter.action.as_deref(),
            label_filter(&filter.labels),
            before_time,
            before_id,
            i64::from(filter.limit),
        )
        .fetch_all(&self.pool)
        .await?;
        Ok(rows::readable(rows).0)
    }
}

#[cfg(test)]
mod tests;
