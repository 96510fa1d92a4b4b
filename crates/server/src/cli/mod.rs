//! The command line: commands, arguments and their help.

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand};
use clap_complete::Shell;
use secrecy::SecretString;

mod clusters;
mod connection;
mod import;
mod jobs;
mod pipelines;
mod run;
mod service;
#[cfg(test)]
mod tests;
mod written;

pub(crate) use clusters::{ClusterAddArgs, ClusterCommand, OfClusterArgs, UsageArgs};
pub(crate) use connection::{DEFAULT_URL, Format, JobArgs, JobRef, JobsArgs, ServerArgs};
pub(crate) use import::{ImportCommand, NemoEvaluatorArgs};
pub(crate) use jobs::{
    CancelArgs, DeleteArgs, ListArgs, Moment, ResultsArgs, RetryArgs, StatusArgs, SubmitArgs, TasksArgs,
    ValidateArgs, WaitArgs,
};
pub(crate) use pipelines::{
    PipelineArgs, PipelineCommand, PipelineListArgs, PipelineRetryArgs, PipelineStatusArgs,
    PipelineSubmitArgs,
};
pub(crate) use run::RunArgs;
pub(crate) use service::{
    CheckConfigArgs, MigrateArgs, Role, Scope, ServeArgs, TokenArgs, TokenCommand, TokenListArgs,
    TokenRevokeArgs,
};
pub(crate) use written::{EventsArgs, LogsArgs, ScriptArgs, Stream};

/// An invalid command line: `EX_USAGE` of sysexits(3), because 2 already means a canceled job.
pub(crate) const EXIT_USAGE: u8 = 64;

const AFTER_HELP: &str = "\
Begin with:
  tao-slurm login --url https://tao.example.org   keep the address and a token
  tao-slurm run --gpus 1 --follow -- nvidia-smi   run a command and see its output

Exit codes:
  0    success; of wait, --watch and --follow: the jobs ended as Done
  1    failure; of wait, --watch and --follow: a job ended in Error
  2    of wait, --watch and --follow: a job was Canceled
  3    the service refused the request
  4    there is no such job, pipeline or cluster
  5    the service is unreachable
  64   invalid command line
  124  of wait: the time is over
  130  Ctrl-C";

/// Run GPU jobs on Slurm clusters: a service with a REST API, and its command-line client
#[derive(Debug, Parser)]
#[command(name = "tao-slurm", version, after_help = AFTER_HELP, propagate_version = true)]
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
    CheckConfig(CheckConfigArgs),
    /// Create, list and revoke API tokens
    ///
    /// These commands use the database, so run them on the service's machine with its configuration.
    #[command(subcommand)]
    Token(TokenCommand),
    /// Keep the address and the token of a service for later commands
    ///
    /// The token comes from the terminal, unseen, or from standard input. It is checked, and stored in
    /// ~/.config/tao-slurm/config.toml, which only you can read.
    Login(LoginArgs),
    /// Run a command as a job and print its ID
    ///
    /// Example: tao-slurm run --gpus 8 --time 2h --image /lustre/images/train.sqsh --follow -- python train.py
    Run(RunArgs),
    /// Submit a job from a file and print its ID
    ///
    /// Example: tao-slurm submit job.yaml --set name=night --watch
    Submit(SubmitArgs),
    /// Check a job and say what it would be, without submitting it
    ///
    /// The exit code is 0 if the job is valid and, with --live, if Slurm would accept it and all its inputs exist.
    Validate(ValidateArgs),
    /// Show all about jobs; of one that failed, why
    Get(JobsArgs),
    /// Show the status of jobs, one line each
    Status(StatusArgs),
    /// Wait until jobs have ended; the exit code tells how
    Wait(WaitArgs),
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
    /// Cancel jobs, or tasks of an array
    Cancel(CancelArgs),
    /// Stop jobs on the cluster and keep their checkpoints, so that they can be resumed
    Pause(JobsArgs),
    /// Resume paused jobs: a training from its newest checkpoint, other work from its start
    Resume(JobsArgs),
    /// Run failed or canceled jobs again, under the same IDs
    Retry(RetryArgs),
    /// Delete finished jobs
    Delete(DeleteArgs),
    /// List jobs, newest first
    List(ListArgs),
    /// Submit, show and change pipelines: jobs that need each other
    #[command(subcommand)]
    Pipeline(PipelineCommand),
    /// Print the request for a configuration of another launcher
    #[command(subcommand)]
    Import(ImportCommand),
    /// List and add clusters, and list their partitions
    #[command(subcommand)]
    Cluster(ClusterCommand),
    /// Show jobs, waiting times and GPU hours of the last days, by owner, cluster, label and others
    Usage(UsageArgs),
    /// Check that a cluster can run jobs, and show how to fix what fails
    Preflight(OfClusterArgs),
    /// Check that the service is ready: exit code 0 if it is, for health checks of containers
    Ready(ServerArgs),
    /// Print a script that completes commands in a shell
    ///
    /// Example: tao-slurm completions bash >~/.local/share/bash-completion/completions/tao-slurm
    Completions(CompletionsArgs),
    /// Print the manual page: tao-slurm man | man -l -
    Man,
}

#[derive(Debug, Args)]
pub(crate) struct LoginArgs {
    /// URL of the service [default: port 8080 of this machine]
    #[arg(long, env = "TAO_SLURM_URL")]
    pub(crate) url: Option<String>,
    /// API token; better typed, because every user of the machine can read the arguments of a process
    #[arg(long, env = "TAO_SLURM_TOKEN", hide_env_values = true)]
    pub(crate) token: Option<SecretString>,
    /// Name of the profile [default: default]
    #[arg(long, env = "TAO_SLURM_PROFILE")]
    pub(crate) profile: Option<String>,
}

#[derive(Debug, Args)]
pub(crate) struct CompletionsArgs {
    pub(crate) shell: Shell,
}
