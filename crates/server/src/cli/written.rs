//! The arguments of the commands that print what a job has written: `logs`, `events` and `script`.

use clap::{Args, ValueEnum};
use domain::ClusterName;

use super::{JobArgs, JobRef, ServerArgs};

#[derive(Debug, Args)]
pub(crate) struct LogsArgs {
    #[command(flatten)]
    pub(crate) job: JobArgs,
    /// Which log [default: all; with --offset: out]
    #[arg(long, value_enum)]
    pub(crate) stream: Option<Stream>,
    /// Print the logs of a role's tasks, such as policy, instead of the job's own
    #[arg(long)]
    pub(crate) role: Option<String>,
    /// Print the logs of this task of the job's array, or only this process of the role, counted from 0
    #[arg(long, value_name = "NUMBER")]
    pub(crate) task: Option<u32>,
    /// Number of the attempt, counted from 1 [default: the newest]
    #[arg(long, value_name = "NUMBER")]
    pub(crate) attempt: Option<u32>,
    /// Print the last lines of each log [default: 500; with --follow: the whole log]
    #[arg(long, value_name = "LINES", conflicts_with = "offset")]
    pub(crate) tail: Option<u32>,
    /// Start at this byte of a single log
    #[arg(long, value_name = "BYTES")]
    pub(crate) offset: Option<u64>,
    /// Print at most this many bytes
    #[arg(long, value_name = "BYTES", requires = "offset", conflicts_with = "follow")]
    pub(crate) limit: Option<u64>,
    /// Print new lines as they are written, through all attempts, until the job ends
    #[arg(long, short)]
    pub(crate) follow: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum, strum::IntoStaticStr)]
#[strum(serialize_all = "snake_case")]
pub(crate) enum Stream {
    /// Standard output
    Out,
    /// Standard error
    Err,
    /// Standard output, then standard error
    All,
    /// Both, of the tasks with the role controller
    Controller,
    /// Both, of the tasks with the role policy
    Policy,
    /// Both, of the tasks with the role rollout
    Rollout,
}

#[derive(Debug, Args)]
pub(crate) struct EventsArgs {
    /// The job: its id, the beginning of its id, or its name [default: all jobs that the token gives access to]
    #[arg(value_name = "JOB")]
    pub(crate) job: Option<JobRef>,
    /// Print events as they happen: of one job until it ends, of all jobs until interrupted
    #[arg(long, short)]
    pub(crate) follow: bool,
    /// Print only events after this one: the event's number for one job, its ID for all jobs
    #[arg(long, value_name = "EVENT")]
    pub(crate) after: Option<String>,
    /// Print only events of this kind; repeatable
    #[arg(long, value_enum)]
    pub(crate) kind: Vec<Kind>,
    /// Print only events of jobs on this cluster; repeatable
    #[arg(long, conflicts_with = "job")]
    pub(crate) cluster: Vec<ClusterName>,
    #[command(flatten)]
    pub(crate) server: ServerArgs,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum, strum::IntoStaticStr)]
#[strum(serialize_all = "snake_case")]
pub(crate) enum Kind {
    /// A change of the status, phase or attempt
    Transition,
    /// A line of a status file
    Status,
    /// The deletion of the job
    Deleted,
}

#[derive(Debug, Args)]
pub(crate) struct ScriptArgs {
    #[command(flatten)]
    pub(crate) job: JobArgs,
    /// Number of the attempt, counted from 1 [default: the newest submitted one]
    #[arg(long, value_name = "NUMBER")]
    pub(crate) attempt: Option<u32>,
}
