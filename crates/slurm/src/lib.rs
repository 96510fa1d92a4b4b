//! The language of Slurm: what we say to it, and how we read its answers.
//!
//! Pure text: nothing here does I/O, waits, reads a clock, or knows what a job means to anybody. A remote command is
//! a value with [`RemoteCommand::render`] and [`RemoteCommand::parse`] side by side; somebody else carries the bytes.
//! Whatever a cluster prints is hostile: sizes are capped, a bad row costs only itself, nothing panics.
//!
//! Start at [`RemoteCommand`], then [`Poll`]; the batch script is in [`script`], what went wrong in [`failure`].

#![deny(clippy::wildcard_enum_match_arm)]
#![deny(missing_docs)]

mod answer;
mod commands;
mod cuda_version;
mod exit_code;
pub mod failure;
mod feed;
mod gres;
mod invalid_name;
mod job_id;
mod mail_address;
mod names;
mod netrc_word;
pub mod node_list;
mod partition_info;
mod partition_list;
pub mod pending_reason;
mod remote_command;
mod remote_path;
mod run_time;
pub mod script;
mod state;
mod text_type;
mod trace_parent;
mod wall_time;

pub use commands::{
    AccountingRow, Cancel, Cancelled, CheckImages, Checkpoints, Conclude, Concluded, Concluding, EarlierRun,
    Exclude, Excluded, ExitMarker, How, ImageFile, Locate, LocateAnswer, Located, LogAnswer, LogChunk,
    LogFrom, LogQuestion, Markers, NodeHealth, NodeHealthAnswer, PastRun, Poll, PollAnswer, Purge, Purged,
    QueueRow, ReadLogs, Remove, Removed, Requeued, RequeuedMarker, RunNote, STATUS_FILES, STATUS_OVERLAP,
    SacctOutcome, SelfCancelMarker, SignsOfLife, Sought, SqueueOutcome, StagedFile, StagedSecret,
    StartedMarker, StatusChunk, StatusCursor, Submission, SubmitAnswer, SubmitBatch, Watched,
};
// What is asked about a cluster, apart from its jobs.
pub use commands::{
    Association, BaseDir, BaseState, DeepFacts, InstallCredentials, Partitions, PartitionsAnswer, Preflight,
    PreflightAnswer, Said, TestOnly, TestOnlyAnswer, TestVerdict,
};
pub use cuda_version::CudaVersion;
pub use exit_code::ExitCode;
pub use failure::{Failure, FailureClass, classify};
pub use invalid_name::InvalidName;
pub use job_id::SlurmJobId;
pub use mail_address::MailAddress;
pub use names::{Account, EnvKey, JobName, NodeName, Partition, UserName};
pub use netrc_word::{InvalidNetrcWord, NetrcWord};
pub use partition_info::{NodeGroup, PartitionInfo};
pub use partition_list::PartitionList;
pub use remote_command::{Call, ParseError, RawOutput, RemoteCommand};
pub use remote_path::RemotePath;
pub use run_time::RunTime;
pub use script::{
    BatchScript, Container, ConversionScript, CosmosNodes, Directives, Launch, OnWarning, ScriptError,
    TaskSetup,
};
pub use state::SlurmState;
pub use trace_parent::TraceParent;
pub use wall_time::{TimeLimit, WallTime};
