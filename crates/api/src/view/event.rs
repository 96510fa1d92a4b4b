//! What happened to a job, as it is shown.

// The macro of `ToSchema` knows a moment by this name only.
use chrono::{DateTime, Utc};
use domain::JobId;
use persistence::{FeedEvent, JobEvent};
use serde::Serialize;
use serde_json::Value;
use utoipa::ToSchema;

use crate::calls::event_id::EventId;

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
    /// Its place among the events of all jobs: what `Last-Event-ID` and the `after` of `GET /events` take. Opaque, but
    /// for this: compared as texts, a later event has a greater id.
    #[schema(example = "00000000000004d2")]
    pub id: String,
    /// Whose event it is.
    pub job_id: JobId,
    /// The job's cluster.
    pub cluster: String,
    /// Counted from 1 for each job, without gaps.
    pub seq: u64,
    /// When the service learned of it.
    pub at: DateTime<Utc>,
    /// `transition`, `status`, `events_truncated`, `orphan` or, as the last one of a job and only among those of all jobs,
    /// `deleted`.
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

/// Events of all jobs, oldest first.
#[derive(Debug, Serialize, ToSchema)]
pub struct EventPageView {
    /// The events. There may be none though more follow: see `Link`.
    pub events: Vec<EventView>,
    /// Give this as `after` to get those that follow.
    #[schema(example = "00000000000004d2")]
    pub next_after: String,
}

impl From<FeedEvent> for EventView {
    fn from(event: FeedEvent) -> Self {
        let FeedEvent { position, job, cluster, event, .. } = event;
        let JobEvent { seq, at, kind, attempt, file, earlier_run, data } = event;
        let id = EventId(position).to_string();
        Self { id, job_id: job, cluster, seq, at, kind, attempt, file, earlier_run, data }
    }
}
