//! The events of all jobs in one order. No event appears before one that a reader has seen.
//!
//! An event gets its position after its transaction has ended; `place_events` in the schema explains why. So a reader calls
//! [`Store::place_events`] first, or gets the highest position from a process that did.

use domain::{ClusterName, JobId, Owner};

use crate::{
    error::{Result, StoreError},
    events::job_events::JobEvent,
    jobs::queries::Viewer,
    store::Store,
    values::{StoredRow, count, signed},
};

/// How many events get positions at a time: other callers wait meanwhile.
const PLACED_TOGETHER: i32 = 2000;
/// How many positions are searched for a page: a viewer that may see few events gets short pages instead of waiting.
const SEARCHED: u64 = 20_000;

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

/// Which events a page contains. An empty list allows all.
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
    /// The search ended at this position.
    pub through: u64,
    /// Whether there are later positions.
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
    /// Applies the filter to an event that was already read.
    pub fn matches(&self, job: JobId, cluster: &str, kind: &str) -> bool {
        (self.jobs.is_empty() || self.jobs.contains(&job))
            && (self.clusters.is_empty() || self.clusters.iter().any(|name| name.as_str() == cluster))
            && (self.kinds.is_empty() || self.kinds.iter().any(|name| name == kind))
    }
}

impl Store {
    /// Gives a position to every event without one, and returns the highest position.
    pub async fn place_events(&self) -> Result<u64> {
        loop {
            let done = sqlx::query!(
                r#"-- events::feed::place_events
                   select head as "head!", placed as "placed!" from place_events($1)"#,
                PLACED_TOGETHER,
            )
            .fetch_one(&self.pool)
            .await?;
            if done.placed < PLACED_TOGETHER {
                return Ok(count(done.head));
            }
        }
    }

    /// The highest position.
    pub async fn feed_head(&self) -> Result<u64> {
        let head = sqlx::query_scalar!(
            "-- events::feed::feed_head
             select head from event_order"
        )
        .fetch_one(&self.pool)
        .await?;
        Ok(count(head))
    }

    /// The events that a viewer may see, after one position and up to another, oldest first. The deletion of a job is an event;
    /// the other events of the job are deleted with it.
    pub async fn feed(
        &self,
        viewer: &Viewer,
        filter: &FeedFilter,
        after: u64,
        head: u64,
        limit: u32,
    ) -> Result<FeedPage> {
        let upto = head.min(after.saturating_add(SEARCHED));
        let jobs: Vec<_> = filter.jobs.iter().map(|job| job.get()).collect();
        let clusters: Vec<String> = filter.clusters.iter().map(ToString::to_string).collect();
        let rows = sqlx::query_as!(
            Row,
            r#"-- events::feed::feed
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

    /// The events of one job after its event `seq` and after `position`, oldest first. Events without a position are left out.
    pub async fn job_feed(
        &self,
        job: JobId,
        seq: u64,
        position: u64,
        kinds: &[String],
        limit: u32,
    ) -> Result<Vec<FeedEvent>> {
        let rows = sqlx::query_as!(
            Row,
            r#"-- events::feed::job_feed
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
}

impl TryFrom<Row> for FeedEvent {
    type Error = StoreError;

    fn try_from(row: Row) -> Result<Self> {
        let stored = StoredRow::of("job_events", &row.position);
        let event = JobEvent {
            seq: stored.number("seq", row.seq)?,
            at: row.at,
            kind: row.kind,
            attempt: stored.number("attempt", row.attempt)?,
            file: row.file,
            earlier_run: row.earlier_run,
            data: row.data,
        };
        Ok(Self {
            position: stored.number("position", row.position)?,
            job: JobId::new(row.job_id),
            owner: Owner::new(row.owner),
            cluster: row.cluster,
            event,
        })
    }
}

#[cfg(test)]
mod tests;
