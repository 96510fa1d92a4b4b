//! The timeline of a job's remote commands.

use chrono::{DateTime, Utc};
use domain::JobId;
use persistence::TimelineEntry;
use remote::CommandResult;
use serde::Serialize;
use utoipa::ToSchema;

/// A page of a job's timeline.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct TimelineView {
    /// The job's id.
    pub job_id: JobId,
    /// The commands, in the order of their start.
    pub entries: Vec<TimelineEntryView>,
    /// The value of `page_token` for the next page; null on the last one.
    pub next_page_token: Option<String>,
}

/// A remote command.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct TimelineEntryView {
    /// The kind of command: `submit`, `locate`, `poll`, `conclude`, `cancel` and others.
    #[schema(example = "submit")]
    pub class: String,
    /// The attempt that the command was for, if any.
    #[schema(minimum = 1)]
    pub attempt: Option<u32>,
    /// The login host that ran it; null if it is unknown or no host did.
    #[schema(example = "login1:22")]
    pub host: Option<String>,
    /// When it began to wait for a connection.
    pub started_on: DateTime<Utc>,
    /// The time until its reply or failure, in milliseconds.
    pub duration_ms: u64,
    /// The result.
    pub result: CommandResult,
    /// The exit code of the remote program; null if it is unknown.
    pub exit_code: Option<i32>,
    /// The size of the reply, in bytes.
    pub bytes: Option<u64>,
    /// The number of jobs that the command served.
    pub jobs: u32,
    /// The effect on this job, in a few words.
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
