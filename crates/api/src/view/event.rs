//! What happened to a job, as it is shown.

// The macro of `ToSchema` knows a moment by this name only.
use chrono::{DateTime, Utc};
use domain::JobId;
use persistence::JobEvent;
use serde::Serialize;
use serde_json::Value;
use utoipa::ToSchema;

/// Events of a job, oldest first.
#[derive(Debug, Serialize, ToSchema)]
pub struct EventListView {
    /// Whose they are.
    pub job_id: JobId,
    /// The events.
    pub events: Vec<EventView>,
    /// Give this as `after` to get those that follow.
    pub next_after: u64,
}

/// Something that happened to a job.
#[derive(Debug, Serialize, ToSchema)]
pub struct EventView {
    /// Counted from 1 for each job, without gaps.
    pub seq: u64,
    /// When the service learned of it.
    pub at: DateTime<Utc>,
    /// `transition`, `status`, `events_truncated` or `orphan`.
    #[schema(example = "status")]
    pub kind: String,
    /// The newest attempt at that time; 0 before the first.
    pub attempt: u32,
    /// Of a status line: the file it stands in, below the job's results.
    #[schema(example = "train/status.json")]
    pub file: Option<String>,
    /// Of a status line: it was written before the present run of the job began, and says nothing about it.
    pub earlier_run: bool,
    /// Of a transition: `status`, `phase`, `message` and, once it is known, `slurm_job_id`. Of a status line: the line,
    /// or `unreadable` with its beginning if it is no JSON object. Of an orphan: `orphan` (its kind), `slurm_job_id`,
    /// `slurm_job_name` and `message`.
    #[schema(value_type = Object)]
    pub data: Value,
}

impl From<JobEvent> for EventView {
    fn from(event: JobEvent) -> Self {
        let JobEvent { seq, at, kind, attempt, file, earlier_run, data } = event;
        Self { seq, at, kind, attempt, file, earlier_run, data }
    }
}
