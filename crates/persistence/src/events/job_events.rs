//! The events of one job, in order.

use domain::Timestamp;
use serde_json::Value;

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

#[cfg(test)]
mod tests;
