//! What the commands take that tell a job's history.

use clap::{Args, ValueEnum};
use domain::JobId;

use super::ServerArgs;

#[derive(Debug, Args)]
pub(crate) struct EventsArgs {
    /// The job's id [default: all jobs that you may see]
    pub(crate) id: Option<JobId>,
    /// Go on as events come: of one job until it has ended, of all jobs from now on
    #[arg(long, short)]
    pub(crate) follow: bool,
    /// Only events after this one: of one job its number, of all jobs its id
    #[arg(long, value_name = "EVENT")]
    pub(crate) after: Option<String>,
    /// Only events of this kind; may be repeated
    #[arg(long, value_enum)]
    pub(crate) kind: Vec<Kind>,
    /// Only events of jobs of this cluster; may be repeated
    #[arg(long, conflicts_with = "id")]
    pub(crate) cluster: Vec<domain::ClusterName>,
    #[command(flatten)]
    pub(crate) server: ServerArgs,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Kind {
    /// The status, phase or attempt has changed
    Transition,
    /// A line of a status file
    Status,
    /// The job was deleted
    Deleted,
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
