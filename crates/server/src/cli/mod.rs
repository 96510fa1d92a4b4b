//! The command line: commands, arguments and their help.

use std::{net::SocketAddr, path::PathBuf, time::Duration};

use clap::{Args, Parser, Subcommand, ValueEnum};
use domain::{ClusterName, JobId, Status};
use secrecy::SecretString;
use strum::IntoEnumIterator;

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
  0   success; with --watch: the job ended as Done
  1   failure; with --watch: the job ended in Error
  2   with --watch: the job was Canceled
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
    /// Show what was found for the results of a job
    Results(ResultsArgs),
    /// Print the batch script of a job as it was submitted
    Script(ScriptArgs),
    /// Cancel a job
    Cancel(JobArgs),
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
    /// List the clusters, their state and their login hosts
    Clusters(ServerArgs),
    /// Check that a cluster can run jobs, and show how to fix what fails
    Preflight(PreflightArgs),
    /// Check that the service is ready: exit code 0 if it is, for health checks of containers
    Ready(ServerArgs),
}

#[derive(Debug, Args)]
pub(crate) struct ServeArgs {
    /// Parts of the service to run in this process; all processes share one database
    #[arg(long, value_enum, default_value_t = Role::All)]
    pub(crate) role: Role,
    /// Address to listen on; overrides the configured one. A worker serves only health and metrics there
    #[arg(long, value_name = "IP:PORT")]
    pub(crate) bind: Option<SocketAddr>,
}

#[derive(Debug, Args)]
pub(crate) struct MigrateArgs {
    /// Go back to this version of the schema; deletes what the later versions store
    ///
    /// An older program that does not run on the present schema names the version that it needs. Stop all newer processes
    /// first, and run this command of the newest program.
    #[arg(long, value_name = "VERSION")]
    pub(crate) to: Option<i64>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum, strum::IntoStaticStr)]
#[strum(serialize_all = "snake_case")]
pub(crate) enum Role {
    /// The API and the worker
    All,
    /// The API only
    Api,
    /// The worker only: it submits and polls jobs on the clusters
    Worker,
}

#[derive(Debug, Subcommand)]
pub(crate) enum TokenCommand {
    /// Create a token and print it, once; the database keeps only its hash
    ///
    /// Example: tao-slurm token create --owner vision --expires-in 90d
    Create(TokenArgs),
    /// List tokens: owner, scopes, state, expiry and last use
    List(TokenListArgs),
    /// Revoke a token permanently; running services stop accepting it within 5 seconds
    Revoke(TokenRevokeArgs),
}

#[derive(Debug, Args)]
pub(crate) struct TokenListArgs {
    /// List only the tokens of this owner
    #[arg(long)]
    pub(crate) owner: Option<String>,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct TokenRevokeArgs {
    /// ID of the token, or its name if only one active token has that name
    pub(crate) token: String,
}

#[derive(Debug, Args)]
pub(crate) struct TokenArgs {
    /// Owner of the jobs that the token gives access to
    #[arg(long)]
    pub(crate) owner: String,
    /// Comma-separated permissions
    #[arg(long, value_enum, value_delimiter = ',', default_value = "read,write")]
    pub(crate) scope: Vec<Scope>,
    /// Name of the token in lists [default: the owner]
    #[arg(long)]
    pub(crate) name: Option<String>,
    /// Lifetime, such as 90d or 12h [default: the token never expires]
    #[arg(long, value_parser = duration, value_name = "DURATION")]
    pub(crate) expires_in: Option<Duration>,
    /// Webhook called on each status change of the token's jobs, unless a job has its own
    #[arg(long, value_name = "URL", requires = "webhook_secret_file")]
    pub(crate) webhook_url: Option<String>,
    /// File with the webhook's signing secret: `whsec_`, then 24 to 64 random bytes in base64
    #[arg(long, value_name = "FILE", requires = "webhook_url")]
    pub(crate) webhook_secret_file: Option<PathBuf>,
    /// Print JSON instead of the bare token
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Scope {
    /// Read the owner's jobs
    Read,
    /// Submit and change the owner's jobs
    Write,
    /// Everything, on the jobs of all owners
    Admin,
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

#[derive(Debug, Args)]
pub(crate) struct JobArgs {
    /// ID of the job
    pub(crate) id: JobId,
    #[command(flatten)]
    pub(crate) server: ServerArgs,
}

#[derive(Debug, Args)]
pub(crate) struct SubmitArgs {
    /// JSON file with the job; `-` reads standard input
    pub(crate) file: PathBuf,
    /// Show the status until the job ends; the exit code tells how it ended
    #[arg(long)]
    pub(crate) watch: bool,
    #[command(flatten)]
    pub(crate) server: ServerArgs,
}

#[derive(Debug, Args)]
pub(crate) struct ValidateArgs {
    /// JSON file with the job; `-` reads standard input
    pub(crate) file: PathBuf,
    /// Check on the cluster, too: test the script with Slurm and check that the inputs exist
    #[arg(long)]
    pub(crate) live: bool,
    #[command(flatten)]
    pub(crate) server: ServerArgs,
}

#[derive(Debug, Args)]
pub(crate) struct StatusArgs {
    #[command(flatten)]
    pub(crate) job: JobArgs,
    /// Show the status until the job ends; the exit code tells how it ended
    #[arg(long)]
    pub(crate) watch: bool,
}

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
    /// Print only this task of the role, counted from 0 [default: all tasks]
    #[arg(long, value_name = "NUMBER", requires = "role")]
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
    /// ID of the job [default: all jobs that the token gives access to]
    pub(crate) id: Option<JobId>,
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
    #[arg(long, conflicts_with = "id")]
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

#[derive(Debug, Args)]
pub(crate) struct ResultsArgs {
    #[command(flatten)]
    pub(crate) job: JobArgs,
    /// Print CSV: one row for each task, one column for each result
    #[arg(long, conflicts_with = "json")]
    pub(crate) csv: bool,
}

#[derive(Debug, Args)]
pub(crate) struct RetryArgs {
    #[command(flatten)]
    pub(crate) job: JobArgs,
    /// JSON file with the job's secret values, which the service deletes when a job ends: `{"secret_env_vars": {…}, "cloud_metadata": {…}}`
    #[arg(long, value_name = "FILE")]
    pub(crate) secrets: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub(crate) struct DeleteArgs {
    #[command(flatten)]
    pub(crate) job: JobArgs,
    /// Also delete the job's results, logs, specification and script on the cluster
    #[arg(long)]
    pub(crate) artifacts: bool,
}

#[derive(Debug, Args)]
pub(crate) struct PreflightArgs {
    /// Name of the cluster [default: the service's default cluster]
    pub(crate) cluster: Option<ClusterName>,
    #[command(flatten)]
    pub(crate) server: ServerArgs,
}

#[derive(Debug, Args)]
pub(crate) struct ListArgs {
    /// List only jobs with this status, such as Running
    #[arg(long, value_parser = status)]
    pub(crate) status: Option<Status>,
    /// Maximum number of jobs, at most 200
    #[arg(long, default_value_t = 20, value_parser = clap::value_parser!(u32).range(1..=200))]
    pub(crate) limit: u32,
    #[command(flatten)]
    pub(crate) server: ServerArgs,
}

fn duration(text: &str) -> Result<Duration, String> {
    humantime_serde::re::humantime::parse_duration(text)
        .map_err(|error| format!("{error}; use a number with a unit, such as 90d"))
}

fn status(text: &str) -> Result<Status, String> {
    Status::iter().find(|status| status.to_string().eq_ignore_ascii_case(text)).ok_or_else(|| {
        let all: Vec<_> = Status::iter().map(|status| status.to_string()).collect();
        format!("unknown status; use one of {}", all.join(", "))
    })
}

#[cfg(test)]
mod tests;
