//! The events of all jobs in one order, in which none appears below one that somebody has read.
//!
//! An event gets its position after the transaction that made it has ended (`place_events` in the migrations says why),
//! so whoever reads calls [`Store::place_events`] first, or is told by somebody who did.

use std::collections::HashMap;

use domain::{ClusterName, Job, JobId, Owner};

use crate::{
    error::StoreError,
    events::of_job::JobEvent,
    jobs::{
        rows::{self, select_jobs},
        stored::Viewer,
    },
    store::Store,
};

/// At most so many events get their positions at a time: others wait for their turn meanwhile.
const PLACED_TOGETHER: i32 = 2000;
/// At most so many positions are looked at for a page, whatever is asked for: who may see little among much else gets
/// shorter pages, and nobody waits.
const LOOKED_AT: u64 = 20_000;

/// An event among those of all jobs.
#[derive(Debug, Clone)]
pub struct FeedEvent {
    /// Rises from event to event, with gaps.
    pub position: u64,
    pub job: JobId,
    pub owner: Owner,
    pub cluster: String,
    pub event: JobEvent,
}

/// Which events are wanted; what is empty is not asked for.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct FeedFilter {
    pub jobs: Vec<JobId>,
    pub clusters: Vec<ClusterName>,
    pub kinds: Vec<String>,
}

/// Some events, oldest first.
#[derive(Debug)]
pub struct FeedPage {
    pub events: Vec<FeedEvent>,
    /// Everything up to this position was looked at.
    pub through: u64,
    /// Whether there is more to look at.
    pub more: bool,
}

/// A row of either statement.
struct Row {
    position: i64,
    job_id: uuid::Uuid,
    owner: String,
    cluster: String,
    seq: i64,
    at: domain::Timestamp,
    kind: String,
    attempt: i32,
    file: Option<String>,
    earlier_run: bool,
    data: serde_json::Value,
}

impl FeedFilter {
    /// The same question, asked of an event that was read already.
    pub fn matches(&self, job: JobId, cluster: &str, kind: &str) -> bool {
        (self.jobs.is_empty() || self.jobs.contains(&job))
            && (self.clusters.is_empty() || self.clusters.iter().any(|name| name.as_str() == cluster))
            && (self.kinds.is_empty() || self.kinds.iter().any(|name| name == kind))
    }
}

impl Store {
    /// Gives every event its position that has none yet, and returns the highest.
    pub async fn place_events(&self) -> Result<u64, StoreError> {
        loop {
            let done = sqlx::query!(
                r#"-- feed::place_events
                   select head as "head!", placed as "placed!" from place_events($1)"#,
                PLACED_TOGETHER,
            )
            .fetch_one(&self.pool)
            .await?;
            if done.placed < PLACED_TOGETHER {
                return unsigned(done.head, "head");
            }
        }
    }

    /// The highest position there is.
    pub async fn feed_head(&self) -> Result<u64, StoreError> {
        let head = sqlx::query_scalar!(
            "-- feed::feed_head
             select head from event_order"
        )
        .fetch_one(&self.pool)
        .await?;
        unsigned(head, "head")
    }

    /// The events after a position and not after another that a viewer may see, oldest first. That a job was deleted
    /// is an event; those before it are gone with the job.
    pub async fn feed(
        &self,
        viewer: &Viewer,
        filter: &FeedFilter,
        after: u64,
        head: u64,
        limit: u32,
    ) -> Result<FeedPage, StoreError> {
        let upto = head.min(after.saturating_add(LOOKED_AT));
        let jobs: Vec<_> = filter.jobs.iter().map(|job| job.get()).collect();
        let clusters: Vec<String> = filter.clusters.iter().map(ToString::to_string).collect();
        let rows = sqlx::query_as!(
            Row,
            r#"-- feed::feed
               select position as "position!", job_id as "job_id!", owner as "owner!", cluster as "cluster!", seq as "seq!",
                      at as "at!", kind as "kind!", attempt as "attempt!", file, earlier_run as "earlier_run!", data as "data!"
               from (
                   select e.position, e.job_id, j.owner, j.cluster, e.seq, e.at, e.kind, e.attempt, e.file, e.earlier_run, e.data
                   from job_events e join jobs j on j.id = e.job_id
                   where e.position > $1 and e.position <= $2 and j.desired_state <> 'delete'
                   union all
                   select d.position, d.id, d.owner, d.cluster, d.seq, d.deleted_at, 'deleted', d.attempt, null, false, '{}'
                   from deleted_jobs d
                   where d.position > $1 and d.position <= $2
               ) f
               where ($3::text is null or owner = $3)
                 and (cardinality($4::uuid[]) = 0 or job_id = any($4))
                 and (cardinality($5::text[]) = 0 or cluster = any($5))
                 and (cardinality($6::text[]) = 0 or kind = any($6))
               order by position
               limit $7"#,
            signed(after),
            signed(upto),
            viewer.owner(),
            &jobs,
            &clusters,
            &filter.kinds,
            i64::from(limit),
        )
        .fetch_all(&self.pool)
        .await?;
        let events = rows.into_iter().map(FeedEvent::try_from).collect::<Result<Vec<_>, _>>()?;
        let is_full = events.len() >= usize::try_from(limit).unwrap_or(usize::MAX);
        let through = match events.last() {
            Some(last) if is_full => last.position,
            _ => upto.max(after),
        };
        Ok(FeedPage { events, through, more: through < head })
    }

    /// The events of one job after its event `seq` and after `position`, oldest first; those that have their positions.
    pub async fn job_feed(
        &self,
        job: JobId,
        seq: u64,
        position: u64,
        kinds: &[String],
        limit: u32,
    ) -> Result<Vec<FeedEvent>, StoreError> {
        let rows = sqlx::query_as!(
            Row,
            r#"-- feed::job_feed
               select e.position as "position!", e.job_id, j.owner, j.cluster, e.seq, e.at, e.kind, e.attempt, e.file,
                      e.earlier_run, e.data
               from job_events e join jobs j on j.id = e.job_id
               where e.job_id = $1 and e.seq > $2 and e.position > $3
                 and (cardinality($4::text[]) = 0 or e.kind = any($4))
               order by e.seq
               limit $5"#,
            job.get(),
            signed(seq),
            signed(position),
            kinds,
            i64::from(limit),
        )
        .fetch_all(&self.pool)
        .await?;
        rows.into_iter().map(FeedEvent::try_from).collect()
    }

    /// Those of the jobs that are there.
    pub async fn find_jobs(&self, ids: &[JobId]) -> Result<HashMap<JobId, Job>, StoreError> {
        let ids: Vec<_> = ids.iter().map(|id| id.get()).collect();
        let most = i64::try_from(ids.len()).unwrap_or(i64::MAX);
        // The bound and the order leave the planner one way only, from which the macro sees that no job is null.
        let rows = select_jobs!(
            "feed::find_jobs",
            "where j.id = any($1) and j.desired_state <> 'delete' order by j.id limit $2",
            &ids,
            most,
        )
        .fetch_all(&self.pool)
        .await?;
        Ok(rows::readable(rows).0.into_iter().map(|job| (job.id, job)).collect())
    }
}

impl TryFrom<Row> for FeedEvent {
    type Error = StoreError;

    fn try_from(row: Row) -> Result<Self, StoreError> {
        let event = JobEvent {
            seq: unsigned(row.seq, "seq")?,
            at: row.at,
            kind: row.kind,
            attempt: u32::try_from(row.attempt).map_err(|_| corrupt("attempt", i64::from(row.attempt)))?,
            file: row.file,
            earlier_run: row.earlier_run,
            data: row.data,
        };
        Ok(Self {
            position: unsigned(row.position, "position")?,
            job: JobId::new(row.job_id),
            owner: Owner::new(row.owner),
            cluster: row.cluster,
            event,
        })
    }
}

fn unsigned(number: i64, column: &'static str) -> Result<u64, StoreError> {
    u64::try_from(number).map_err(|_| corrupt(column, number))
}

fn corrupt(column: &'static str, number: i64) -> StoreError {
    StoreError::Corrupt { table: "job_events", column, row: number.to_string() }
}

fn signed(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests;
