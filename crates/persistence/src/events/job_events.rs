//! The events of one job, in order.

use domain::{JobId, Timestamp};
use serde_json::Value;

use crate::{
    error::Result,
    store::Store,
    values::{StoredRow, signed},
};

/// One event of a job.
#[derive(Debug, Clone, PartialEq)]
pub struct JobEvent {
    /// Counted from 1 for each job, without gaps.
    pub seq: u64,
    /// When the service learned of it.
    pub at: Timestamp,
    /// `transition`, `status`, `events_truncated` or `orphan`.
    pub kind: String,
    /// The newest attempt at that time; 0 before the first.
    pub attempt: u32,
    /// Of a status line: its file, relative to the results directory.
    pub file: Option<String>,
    /// Of a status line: an earlier run wrote it.
    pub earlier_run: bool,
    pub data: Value,
}

impl Store {
    /// The events of a job after `after`, oldest first. An empty list of kinds means all kinds.
    pub async fn events(&self, job: JobId, after: u64, kinds: &[&str], limit: u32) -> Result<Vec<JobEvent>> {
        let kinds: Vec<String> = kinds.iter().map(|kind| (*kind).to_owned()).collect();
        let rows = sqlx::query!(
            "-- events::job_events::events
             select seq, at, kind, attempt, file, earlier_run, data from job_events
             where job_id = $1 and seq > $2 and (cardinality($3::text[]) = 0 or kind = any($3))
             order by seq
             limit $4",
            job.get(),
            signed(after),
            &kinds,
            i64::from(limit),
        )
        .fetch_all(&self.pool)
        .await?;
        let stored = StoredRow::of("job_events", &job);
        rows.into_iter()
            .map(|row| {
                Ok(JobEvent {
                    seq: stored.number("seq", row.seq)?,
                    at: row.at,
                    kind: row.kind,
                    attempt: stored.number("attempt", row.attempt)?,
                    file: row.file,
                    earlier_run: row.earlier_run,
                    data: row.data,
                })
            })
            .collect()
    }
}

#[cfg(test)]
mod tests;
