//! The command line: commands, arguments and their help.

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand};
use domain::{ClusterName, JobId};
use secrecy::SecretString;

mod import;
mod jobs;
mod pipelines;
mod service;
#[cfg(test)]
mod tests;
mod written;

pub(crate) use import::{ImportCommand, NemoEvaluatorArgs};
pub(crate) use jobs::{
    CancelArgs, DeleteArgs, ListArgs, ResultsArgs, RetryArgs, StatusArgs, SubmitArgs, TasksArgs, ValidateArgs,
};
pub(crate) use pipelines::{
    PipelineArgs, PipelineCommand, PipelineListArgs, PipelineRetryArgs, PipelineStatusArgs,
    PipelineSubmitArgs,
};
pub(crate) use service::{
    MigrateArgs, Role, Scope, ServeArgs, TokenArgs, TokenCommand, TokenListArgs, TokenRevokeArgs,
};
pub(crate) use written::{EventsArgs, LogsArgs, ScriptArgs, Stream};

/// The default address of the service.
pub(crate) const DEFAULT_URL: &str = "http://127.0.0.1:8080";

/// An invalid command line: `EX_USAGE` of sysexits(3), because 2 already means a canceled job.
pub(crate) const EXIT_USAGE: u8 = 64;

/// The service is unreachable, or it rejected the request.
pub(crate) const EXIT_REQUEST_FAILED: u8 = 3;

/// The heading of the client's common options in help texts.
const CONNECTION: &str = "Connection";

const EXIT_CODES: &str = "\
Exit codes:
  0   success; with --watch: the job or pipeline ended as Done
  1   failure; with --watch: the job or pipeline ended in Error
  2   with --watch: the job or pipeline was Canceled
  3   the service is unreachable, or it rejected the request
  64  invalid command line";

/// Run GPU jobs on Slurm clusters: a service with a REST API, and its command-line client
#[derive(Debug, Parser)]
#[command(name = "tao-slurm", version, after_help = EXIT_CODES, propagate_version = true)]
pub(crate) struct Cli {
    /// Configuration file of the service [default: ./tao-slurm.toml, if it exists]
    #[arg(long, global = true, env = "TAO_SLURM_CONFIG", value_name = "FILE", hide_env_values = true)]
    pub(crate) config: Option<PathBuf>,
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Run the service
    ///
    /// Without a configured database it starts a private Postgres in its data directory. It upgrades the database schema at its start.
    /// SIGTERM or Ctrl-C stops it; jobs on the clusters go on.
    Serve(ServeArgs),
    /// Create or upgrade the database schema, then exit
    ///
    /// `serve` does this at its start. Run it separately to upgrade before the new version starts, or to go back.
    Migrate(MigrateArgs),
    /// Print the OpenAPI document of the API
    Openapi,
    /// Show the effective configuration, without secrets, and likely problems
    CheckConfig {
        /// Print an example file instead: every setting with its default, its environment variables and a description
        #[arg(long)]
        example: bool,
    },
    /// Create, list and revoke API tokens
    ///
    /// These commands use the database, so run them on the service's machine with its configuration.
    #[command(subcommand)]
    Token(TokenCommand),
    /// Submit a job and print its ID
    ///
    /// Example: tao-slurm submit job.json --watch
    Submit(SubmitArgs),
    /// Check a job and print its batch script, without submitting it
    ///
    /// The exit code is 0 if the job is valid and, with --live, if Slurm would accept it and all its inputs exist.
    Validate(ValidateArgs),
    /// Show the status of a job
    Status(StatusArgs),
    /// Print the logs of a job
    ///
    /// Example: tao-slurm logs ID --stream err --tail 100
    Logs(LogsArgs),
    /// Print the events of one job, or of all jobs: state changes and lines of status files
    ///
    /// Example: tao-slurm events ID --follow
    Events(EventsArgs),
    /// List the attempts of a job: Slurm job, state, exit code, nodes and outcome
    Attempts(JobArgs),
    /// List the remote commands run for a job: when, on which login host, how long, and the result
    Timeline(JobArgs),
    /// List the tasks of a job's array: state, Slurm job, exit code, nodes and parameters
    Tasks(TasksArgs),
    /// Show what was found for the results of a job
    Results(ResultsArgs),
    /// Print the batch script of a job as it was submitted
    Script(ScriptArgs),
    /// Cancel a job, or tasks of its array
    Cancel(CancelArgs),
    /// Stop a job on the cluster and keep its checkpoints, so that it can be resumed
    Pause(JobArgs),
    /// Resume a paused job: a training from its newest checkpoint, other work from its start
    Resume(JobArgs),
    /// Run a failed or canceled job again, under the same ID
    Retry(RetryArgs),
    /// Delete a finished job
    Delete(DeleteArgs),
    /// List jobs, newest first
    List(ListArgs),
    /// Submit, show and change pipelines: jobs that need each other
    #[command(subcommand)]
    Pipeline(PipelineCommand),
    /// Print the request for a configuration of another launcher
    #[command(subcommand)]
    Import(ImportCommand),
    /// List the clusters, their state and their login hosts
    Clusters(ServerArgs),
    /// Check that a cluster can run jobs, and show how to fix what fails
    Preflight(PreflightArgs),
    /// Check that the service is ready: exit code 0 if it is, for health checks of containers
    Ready(ServerArgs),
}

#[derive(Debug, Args)]
pub(crate) struct ServerArgs {
    /// URL of the service
    #[arg(long, env = "TAO_SLURM_URL", default_value = DEFAULT_URL, help_heading = CONNECTION)]
    pub(crate) url: String,
    /// API token
    #[arg(long, env = "TAO_SLURM_TOKEN", hide_env_values = true, help_heading = CONNECTION)]
    pub(crate) token: Option<SecretString>,
    /// Print the JSON response of the API
    #[arg(long, help_heading = CONNECTION)]
    pub(crate) json: bool,
}

fn job_id(text: &str) -> Result<JobId, &'static str> {
    text.parse().map_err(|_| "the id of a job is a UUID; `tao-slurm list` shows it")
}

#[derive(Debug, Args)]
pub(crate) struct JobArgs {
    /// ID of the job
    #[arg(value_parser = job_id)]
    pub(crate) id: JobId,
    #[command(flatten)]
    pub(crate) server: ServerArgs,
}

#[derive(Debug, Args)]
pub(crate) struct PreflightArgs {
    /// Name of the cluster [default: the service's default cluster]
    pub(crate) cluster: Option<ClusterName>,
    #[command(flatten)]
    pub(crate) server: ServerArgs,
}
