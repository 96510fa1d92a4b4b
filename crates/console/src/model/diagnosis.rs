//! Why a job failed.

use serde::Deserialize;

use super::Text;

/// Why a job failed, in short.
#[derive(Debug, Deserialize)]
pub(crate) struct JobFailure {
    pub(crate) rule: Text,
    pub(crate) advice: Text,
}

/// The first cause of a failure, and what followed.
#[derive(Debug, Deserialize)]
pub(crate) struct Diagnosis {
    pub(crate) attempt: u32,
    pub(crate) task: u32,
    pub(crate) rule: Text,
    pub(crate) category: Text,
    pub(crate) why: Text,
    pub(crate) advice: Text,
    pub(crate) node: Option<Text>,
    pub(crate) rank: Option<u32>,
    pub(crate) first: Option<LogLine>,
    pub(crate) followed: Vec<FollowedLine>,
    pub(crate) has_gaps: bool,
}

/// A line of a log.
#[derive(Debug, Deserialize)]
pub(crate) struct LogLine {
    pub(crate) log: Text,
    pub(crate) offset: u64,
    pub(crate) line: Text,
}

/// A line that followed from the cause.
#[derive(Debug, Deserialize)]
pub(crate) struct FollowedLine {
    pub(crate) rule: Text,
    pub(crate) log: Text,
    pub(crate) offset: u64,
    pub(crate) line: Text,
}
