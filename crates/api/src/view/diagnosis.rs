//! Why a job failed.

use domain::{Failure, FailureCategory, FollowedLine, Job, JobId, LogPlace};
use serde::Serialize;
use utoipa::ToSchema;

/// Why a job failed, in short.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub(crate) struct FailureView {
    /// The rule that explains the failure, or Slurm's state in lower case; `unknown` if nothing explains it.
    #[schema(example = "cuda-out-of-memory")]
    pub rule: String,
    /// The kind of the failure.
    pub category: FailureCategory,
    /// The node at fault, if it is known.
    pub node: Option<String>,
    /// What to do about it.
    pub advice: String,
}

impl FailureView {
    /// That of a job that has ended in an error.
    pub(crate) fn of(job: &Job) -> Option<Self> {
        let failure = job.failure()?;
        Some(Self {
            rule: failure.rule.clone(),
            category: failure.category,
            node: failure.node.as_ref().map(ToString::to_string),
            advice: failure.advice.clone(),
        })
    }
}

/// The first cause of a failure: of all lines in the logs that look like errors, the earliest that is not the consequence of another.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct DiagnosisView {
    /// The job's id.
    pub job_id: JobId,
    /// The attempt that failed.
    pub attempt: u32,
    /// The task that failed; 0 for a job without an array.
    pub task: u32,
    /// The rule that explains the failure, or Slurm's state in lower case; `unknown` if nothing explains it.
    #[schema(example = "cuda-out-of-memory")]
    pub rule: String,
    /// The kind of the failure.
    pub category: FailureCategory,
    /// The cause in a clause.
    pub why: String,
    /// What to do about it.
    pub advice: String,
    /// The node at fault, if it is known.
    pub node: Option<String>,
    /// The number of the process among those of the job, if the log shows it.
    pub rank: Option<u32>,
    /// The line that shows the cause; null if other evidence does, or nothing.
    pub first: Option<LogLineView>,
    /// What followed: the first line of some other rules.
    pub followed: Vec<FollowedLineView>,
    /// Whether the logs may have other lines that look like errors: they were too large to be searched whole, or were not
    /// searched in time.
    pub has_gaps: bool,
}

/// A line of a log. `GET /jobs/{id}/logs` with the same offset begins with it.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct LogLineView {
    /// The log: `main.err`, or `policy/0.out` for a process of a role.
    #[schema(example = "main.err")]
    pub log: String,
    /// Where the line begins, in bytes.
    pub offset: u64,
    /// The line without control characters and colours, at most 300 of its characters.
    #[schema(max_length = 300)]
    pub line: String,
}

/// A line that followed.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct FollowedLineView {
    /// The rule that says what the line is.
    pub rule: String,
    /// Where it is.
    #[serde(flatten)]
    pub at: LogLineView,
}

impl From<LogPlace> for LogLineView {
    fn from(LogPlace { log, offset, text }: LogPlace) -> Self {
        Self { log, offset, line: text }
    }
}

impl DiagnosisView {
    pub(crate) fn new(job_id: JobId, attempt: u32, task: u32, failure: Failure) -> Self {
        let followed = |FollowedLine { rule, at }| FollowedLineView { rule, at: at.into() };
        Self {
            job_id,
            attempt,
            task,
            rule: failure.rule,
            category: failure.category,
            why: failure.why,
            advice: failure.advice,
            node: failure.node.as_ref().map(ToString::to_string),
            rank: failure.rank,
            first: failure.line.map(LogLineView::from),
            followed: failure.followed.into_iter().map(followed).collect(),
            has_gaps: failure.has_gaps,
        }
    }
}
