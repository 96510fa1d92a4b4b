//! Events.

// `ToSchema` recognizes this type by its name only.
use chrono::{DateTime, Utc};
use domain::JobId;
use persistence::{FeedEvent, JobEvent};
use serde::Serialize;
use serde_json::Value;
use utoipa::ToSchema;

use crate::calls::event_id::EventId;

/// Events of a job, oldest first.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct EventListView {
    /// The job's id.
    pub job_id: JobId,
    /// The events.
    pub events: Vec<EventView>,
    /// The value of `after` for the next page.
    pub next_after: u64,
}

/// An event of a job.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct EventView {
    /// The event's position among the events of all jobs, for `Last-Event-ID` and the `after` of `GET /events`. Opaque, except that
    /// later events have greater ids when compared as texts.
    #[schema(example = "00000000000004d2")]
    pub id: String,
    /// The job's id.
    pub job_id: JobId,
    /// The job's cluster.
    pub cluster: String,
    /// The event's number within the job, from 1 without gaps.
    pub seq: u64,
    /// When the service recorded the event.
    pub at: DateTime<Utc>,
    /// `transition`, `status`, `events_truncated`, `orphan` or `deleted`. `deleted` is the last event of a job, and appears only
    /// among the events of all jobs.
    #[schema(example = "status")]
    pub kind: String,
    /// The newest attempt at that time; 0 before the first.
    pub attempt: u32,
    /// For a status line: its file, relative to the job's results.
    #[schema(example = "train/status.json")]
    pub file: Option<String>,
    /// For a status line: whether it was written before the current run began, and so says nothing about that run.
    pub earlier_run: bool,
    /// For a transition: `status`, `phase`, `message` and, once it is known, `slurm_job_id`. For a status line: the line, or
    /// `unreadable` with its beginning if it is not a JSON object. For an orphan: `orphan` (its kind), `slurm_job_id`,
    /// `slurm_job_name` and `message`.
    #[schema(value_type = Object)]
    pub data: Value,
}

/// Events of all jobs, oldest first.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct EventPageView {
    /// The events. The list can be empty even if more events follow; see `Link`.
    pub events: Vec<EventView>,
    /// The value of `after` for the next page.
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
