//! What runs on a cluster: the remote commands with their programs and parsers, and the batch script.
//!
//! Pure text: nothing here does I/O, waits, or reads a clock. A remote command is a value with
//! [`RemoteCommand::render`] and [`RemoteCommand::parse`] side by side; the caller transports the bytes. Answers are not
//! trusted: sizes are capped, malformed rows are skipped, nothing panics.
//!
//! Start at [`RemoteCommand`], then [`Poll`]; the batch script is in [`script`].

#![deny(clippy::wildcard_enum_match_arm)]
#![deny(missing_docs)]

mod answer;
mod commands;
mod netrc_word;
mod remote_command;
mod rpcs;
pub mod script;
mod stdin_writer;
mod subject;

pub use commands::*;
pub use netrc_word::{InvalidNetrcWord, NetrcWord};
pub use remote_command::{Call, CommandResult, ParseError, RawOutput, RemoteCommand, Repeat};
pub use script::{
    BatchScript, Component, Container, Directives, Kind, Log, Nodes, OnWarning, Place, Probe, ScriptError,
    ServiceRules, Value, launcher,
};
pub use subject::{AttemptKey, Subject};
