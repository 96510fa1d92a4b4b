//! What the commands take that tell a job's history.

use clap::{Args, ValueEnum};
use domain::JobId;

use super::ServerArgs;

#[derive(Debug, Args)]
pub(crate) struct EventsArgs {
    /// The job's id
    pub(crate) id: JobId,
    /// Only events after this number
    #[arg(long, value_name = "NUMBER", default_value_t = 0)]
    pub(crate) after: u64,
    /// Only events of this kind; may be repeated
    #[arg(long, value_enum)]
    pub(crate) kind: Vec<Kind>,
    #[command(flatten)]
    pub(crate) server: ServerArgs,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Kind {
    /// The status, phase or attempt has changed
    Transition,
    /// A line of a status file
    Status,
}

#[derive(Debug, Args)]
pub(crate) struct ScriptArgs {
    /// The job's id
    pub(crate) id: JobId,
    /// Of this attempt [default: the newest that was sent]
    #[arg(long, value_name = "NUMBER")]
    pub(crate) attempt: Option<u32>,
    #[command(flatten)]
    pub(crate) server: ServerArgs,
}
