//! What was run on the cluster for a job.

use chrono::{DateTime, Utc};
use domain::JobId;
use persistence::TimelineEntry;
use remote::CommandResult;
use serde::Serialize;
use utoipa::ToSchema;

/// A page of a job's timeline.
#[derive(Debug, Serialize, ToSchema)]
pub struct TimelineView {
    /// Whose it is.
    pub job_id: JobId,
    /// The commands, in the order in which they began.
    pub entries: Vec<TimelineEntryView>,
    /// Give this as `page_token` to get the next page; null on the last one.
    pub next_page_token: Option<String>,
}

/// A remote command.
#[derive(Debug, Serialize, ToSchema)]
pub struct TimelineEntryView {
    /// Which command: `submit`, `locate`, `poll`, `conclude`, `cancel` and others; `conversion_submit` and the like for
    /// the conversion of the job's image.
    #[schema(example = "submit")]
    pub class: String,
    /// The attempt that it was for, if it was for one.
    #[schema(minimum = 1)]
    pub attempt: Option<u32>,
    /// The login host that ran it; null if that is not known, or none did.
    #[schema(example = "login1:22")]
    pub host: Option<String>,
    /// When it began to wait for a connection.
    pub started_on: DateTime<Utc>,
    /// How long it took until its answer was there or given up, in milliseconds.
    pub duration_ms: u64,
    /// How it went.
    pub result: CommandResult,
    /// The exit code of the remote program; null if it is not known.
    pub exit_code: Option<i32>,
    /// How long its answer was, in bytes.
    pub bytes: Option<u64>,
    /// How many jobs it was for: one command does the same for many.
    pub jobs: u32,
    /// What came of it for this job, in a few words.
    #[schema(example = "submitted as 4711")]
    pub outcome: Option<String>,
}

impl From<TimelineEntry> for TimelineEntryView {
    fn from(entry: TimelineEntry) -> Self {
        Self {
            class: entry.class,
            attempt: entry.attempt,
            host: entry.host,
            started_on: entry.started_at,
            duration_ms: u64::try_from(entry.duration.as_millis()).unwrap_or(u64::MAX),
            result: entry.result,
            exit_code: entry.exit_code,
            bytes: entry.bytes,
            jobs: entry.jobs,
            outcome: entry.outcome,
        }
    }
}
