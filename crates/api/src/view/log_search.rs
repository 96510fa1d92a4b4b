//! What was found in logs.

use domain::JobId;
use serde::Serialize;
use utoipa::ToSchema;

/// What was found in the logs of an attempt.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct LogSearchView {
    /// The job's id.
    pub job_id: JobId,
    /// The attempt whose logs were searched.
    pub attempt: u32,
    /// The hits, by log and offset.
    pub hits: Vec<LogHitView>,
    /// How far each log was searched.
    pub logs: Vec<SearchedLogView>,
    /// Whether all logs were searched to their ends. If not, go on with `from` of each.
    pub complete: bool,
}

/// A match.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct LogHitView {
    /// The log: `main.err`, or `policy/0.out` for a process of a role.
    #[schema(example = "main.err")]
    pub log: String,
    /// Where the match begins, in bytes. `GET /jobs/{id}/logs` with the same offset begins with it.
    pub offset: u64,
    /// The line around the match, without control characters and colours: at most 300 of its characters. What stands between two carriage
    /// returns is a line.
    #[schema(max_length = 300)]
    pub excerpt: String,
    /// The number of characters (Unicode scalar values) of the excerpt before the match.
    pub match_start: usize,
    /// The number of characters of the match in the excerpt.
    pub match_length: usize,
}

/// One log.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct SearchedLogView {
    /// The log, as in the hits.
    #[schema(example = "main.err")]
    pub log: String,
    /// Its length when the search began, in bytes.
    pub size: u64,
    /// Where the search began.
    pub from: u64,
    /// Where it stopped: the next `from`. If it is the same, the cluster was too slow.
    pub to: u64,
    /// Whether it reached the end of the log.
    pub complete: bool,
}
