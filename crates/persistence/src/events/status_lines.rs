//! The status lines of a job with metrics.

use domain::{JobId, Timestamp};
use serde_json::Value;

use crate::{
    error::Result,
    store::Store,
    values::{StoredRow, signed},
};

/// A status line.
#[derive(Debug, Clone, PartialEq)]
pub struct MetricLine {
    /// The number of its event.
    pub seq: u64,
    pub attempt: u32,
    pub at: Timestamp,
    /// Its content as JSON.
    pub data: Value,
}

impl Store {
    /// Lines with metrics after the event `seq`, oldest first; of a task of an array only its own, of an attempt only its own.
    pub async fn metric_lines(
        &self,
        job: JobId,
        task: Option<u32>,
        attempt: Option<u32>,
        seq: u64,
        limit: u32,
    ) -> Result<Vec<MetricLine>> {
        // The results of a task are in a directory of its number.
        let directory = task.map(|task| format!("{task}/"));
        let rows = sqlx::query!(
            r#"-- events::status_lines::metric_lines
               select seq, at, attempt, data from job_events
               where job_id = $1 and seq > $2 and kind = 'status' and data ?| array['kpi', 'graphical', 'key_metric']
                 and ($3::text is null or starts_with(file, $3)) and attempt = coalesce($4::bigint, attempt)
               order by seq limit $5"#,
            job.get(),
            signed(seq),
            directory,
            attempt.map(i64::from),
            i64::from(limit),
        )
        .fetch_all(&self.pool)
        .await?;
        let line = |row: (i64, Timestamp, i32, Value)| {
            let stored = StoredRow::of("job_events", &row.0);
            Ok(MetricLine {
                seq: stored.number("seq", row.0)?,
                attempt: stored.number("attempt", row.2)?,
                at: row.1,
                data: row.3,
            })
        };
        rows.into_iter().map(|row| line((row.seq, row.at, row.attempt, row.data))).collect()
    }

    /// Whether the job has written more status lines than are stored.
    pub async fn lacks_status_lines(&self, job: JobId) -> Result<bool> {
        let found = sqlx::query_scalar!(
            r#"-- events::status_lines::lacks_status_lines
               select exists (select from job_events where job_id = $1 and kind = 'events_truncated') as "lacks!""#,
            job.get(),
        )
        .fetch_one(&self.pool)
        .await?;
        Ok(found)
    }
}

#[cfg(test)]
mod tests;
