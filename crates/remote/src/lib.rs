//! What runs on a cluster: the remote commands with their programs and parsers, and the batch script.
//!
//! Pure text: nothing here does I/O, waits, or reads a clock. A remote command is a value with
//! [`RemoteCommand::render`] and [`RemoteCommand::parse`] side by side; the caller carries the bytes. All answers are
//! hostile: sizes are capped, a malformed row is skipped, nothing panics.
//!
//! Start at [`RemoteCommand`], then [`Poll`]; the batch script is in [`script`].

#![deny(clippy::wildcard_enum_match_arm)]
#![deny(missing_docs)]

mod answer;
mod commands;
mod netrc_word;
mod remote_command;
pub mod script;
mod stdin_writer;

pub use commands::{
    Association, BaseDir, BaseState, Cancel, Canceled, CheckImages, Checkpoints, Conclude, Concluded,
    Concluding, DeepFacts, EarlierRun, Exclude, Excluded, ExitRecord, How, ImageFile, InstallCredentials,
    Locate, LocateAnswer, Located, LogAnswer, LogChunk, LogFrom, LogQuestion, Markers, NodeHealth,
    NodeHealthAnswer, Partitions, PartitionsAnswer, Poll, PollAnswer, Preflight, PreflightAnswer, Purge,
    Purged, ReadLogs, Remove, Removed, Requeued, RequeuedMarker, RunNote, STATUS_FILES, STATUS_OVERLAP,
    SacctOutcome, Said, SelfCancelMarker, SignsOfLife, Sought, SqueueOutcome, StagedFile, StagedSecret,
    StartedMarker, StatusChunk, StatusCursor, Submission, SubmitAnswer, SubmitBatch, TestOnly,
    TestOnlyAnswer, TestVerdict, Watched,
};
pub use netrc_word::{InvalidNetrcWord, NetrcWord};
pub use remote_command::{Call, ParseError, RawOutput, RemoteCommand};
pub use script::{
    BatchScript, Container, ConversionScript, CosmosNodes, Directives, Launch, OnWarning, ScriptError,
    TaskSetup,
};
// What is asked about a cluster, apart from its jobs.
