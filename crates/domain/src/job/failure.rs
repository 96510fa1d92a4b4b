//! Why a run failed, as far as its logs, Slurm and the exit record tell.

use serde::{Deserialize, Serialize};
use slurm::NodeName;
use strum::{EnumIter, IntoStaticStr};
use utoipa::ToSchema;

/// Why a run failed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Failure {
    /// The rule that explains it, or Slurm's state in lower case.
    pub rule: String,
    pub category: FailureCategory,
    /// The cause in a clause.
    pub why: String,
    /// What to do about it, in a sentence or two.
    pub advice: String,
    /// The line that shows it first; `None` if no line does.
    pub line: Option<LogPlace>,
    /// The number of its process among those of the job, if the log shows it.
    pub rank: Option<u32>,
    /// The node at fault, if it is known.
    pub node: Option<NodeName>,
    /// What followed: the first lines of some other rules.
    pub followed: Vec<FollowedLine>,
    /// Whether the logs may have other lines that look like errors: they were too large, or could not be searched in time.
    pub has_gaps: bool,
}

/// A line of a log.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LogPlace {
    /// The log, as `GET /jobs/{id}/logs` names it: `main.err`, `policy/0.out`.
    pub log: String,
    /// Where the line begins, in bytes.
    pub offset: u64,
    /// The line without control characters, at most 300 of its characters.
    #[serde(rename = "line")]
    pub text: String,
}

/// A line that followed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FollowedLine {
    /// The rule that says what the line is.
    pub rule: String,
    #[serde(flatten)]
    pub at: LogPlace,
}

/// The kind of a failure.
#[derive(
    Debug,
    Clone,
    Copy,
    PartialEq,
    Eq,
    PartialOrd,
    Ord,
    Hash,
    Serialize,
    Deserialize,
    IntoStaticStr,
    EnumIter,
    ToSchema,
)]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
pub enum FailureCategory {
    /// The job's program or its configuration.
    Code,
    /// The software that the program runs with: modules, libraries, drivers.
    Environment,
    /// The job's files: missing, not accessible, or not what the program expects.
    Data,
    /// The memory of a GPU.
    GpuMemory,
    /// The memory of a node, or what the job may use of it.
    HostMemory,
    /// A GPU that does not work.
    Gpu,
    /// The connections between the processes, the nodes, or to the Internet.
    Network,
    /// A file system, a disk or a quota.
    Storage,
    /// The image of a container, or the container itself.
    Image,
    /// Slurm, or a node that it lost.
    Slurm,
    /// The job's time limit.
    TimeLimit,
    /// No rule knows the kind.
    Unknown,
}

impl Failure {
    /// A failure that no line and no rule explains.
    pub(crate) fn unknown() -> Self {
        Self {
            rule: "unknown".to_owned(),
            category: FailureCategory::Unknown,
            why: "no line of the logs explains it".to_owned(),
            advice: "Read the ends of the logs.".to_owned(),
            line: None,
            rank: None,
            node: None,
            followed: Vec::new(),
            has_gaps: false,
        }
    }
}
