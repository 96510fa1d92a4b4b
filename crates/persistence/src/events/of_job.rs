//! What happened to a job, in order.

use domain::{JobId, Timestamp};
use serde_json::Value;

use crate::{error::StoreError, store::Store};

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
    /// Of a status line: its file, below the job's results.
    pub file: Option<String>,
    /// Of a status line: it was written before the present run began.
    pub earlier_run: bool,
    pub data: Value,
}

impl Store {
    /// The events of a job after `after`, oldest first; of the kinds that are named, or of all if none is.
    pub async fn events(
        &self,
        job: JobId,
        after: u64,
        kinds: &[&str],
        limit: u32,
    ) -> Result<Vec<JobEvent>, StoreError> {
        let kinds: Vec<String> = kinds.iter().map(|kind| (*kind).to_owned()).collect();
        let rows = sqlx::query!(
            "-- events::events
             select seq, at, kind, attempt, file, earlier_run, data from job_events
             where job_id = $1 and seq > $2 and (cardinality($3::text[]) = 0 or kind = any($3))
             order by seq
             limit $4",
            job.get(),
            i64::try_from(after).unwrap_or(i64::MAX),
            &kinds,
            i64::from(limit),
        )
        .fetch_all(&self.pool)
        .await?;
        let event = |seq: i64, attempt: i32| Some((u64::try_from(seq).ok()?, u32::try_from(attempt).ok()?));
        let corrupt = || StoreError::Corrupt { table: "job_events", column: "seq", row: job.to_string() };
        rows.into_iter()
            .map(|row| {
                let (seq, attempt) = event(row.seq, row.attempt).ok_or_else(corrupt)?;
                Ok(JobEvent {
                    seq,
                    at: row.at,
                    kind: row.kind,
                    attempt,
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
