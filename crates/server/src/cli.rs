//! The command line.

mod history;

use std::{net::SocketAddr, path::PathBuf, time::Duration};

use clap::{Args, Parser, Subcommand, ValueEnum};
use domain::{JobId, Status};
pub(crate) use history::{EventsArgs, Kind, ScriptArgs};
use secrecy::SecretString;

use crate::client::{ClientError, DEFAULT_URL};

/// A command line that cannot be understood: `EX_USAGE` of sysexits(3), because 2 already means a canceled job.
pub(crate) const EXIT_USAGE: u8 = 64;
/// The server could not be asked, or refused.
const EXIT_NO_ANSWER: u8 = 3;

const EXIT_CODES: &str = "\
Exit codes:
  0   success; with --watch: the job is Done
  1   failure; with --watch: the job ended in Error
  2   with --watch: the job was Canceled
  3   the server could not be reached, or refused
  64  the command line is wrong";

/// The exit code of a failed command.
pub(crate) fn exit_code_of(error: &anyhow::Error) -> u8 {
    if error.downcast_ref::<ClientError>().is_some() { EXIT_NO_ANSWER } else { 1 }
}

/// Runs GPU jobs on Slurm clusters: a service with a REST API, and a client for it.
#[derive(Debug, Parser)]
#[command(name = "tao-slurm", version, after_help = EXIT_CODES, propagate_version = true)]
pub(crate) struct Cli {
    /// The configuration file [default: ./tao-slurm.toml, if there is one]
    #[arg(long, global = true, env = "TAO_SLURM_CONFIG", value_name = "FILE", hide_env_values = true)]
    pub(crate) config: Option<PathBuf>,
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Run the service
    Serve(ServeArgs),
    /// Bring the database up to date, and nothing else
    Migrate,
    /// Print the OpenAPI document of the API
    Openapi,
    /// Show the effective configuration, without secrets, and likely problems
    CheckConfig {
        /// Print an example file instead: every setting with its default, its environment variables and what it is for
        #[arg(long)]
        example: bool,
    },
    /// Manage the tokens that callers need
    #[command(subcommand)]
    Token(TokenCommand),
    /// Send a job to the service and print its id
    Submit(SubmitArgs),
    /// Show what the service would make of a job, and send nothing to Slurm
    Validate(ValidateArgs),
    /// Show where a job stands
    Status(StatusArgs),
    /// Print a job's logs
    Logs(LogsArgs),
    /// Print what happened to a job, or to all: transitions and status lines
    Events(EventsArgs),
    /// Print each attempt to run a job, and what became of it
    Attempts(JobArgs),
    /// Print each remote command that was run for a job, how long it took and how it went
    Timeline(JobArgs),
    /// Print a job's batch script as it was submitted
    Script(ScriptArgs),
    /// Cancel a job
    Cancel(JobArgs),
    /// Take a job off the cluster and keep it, with its checkpoints, until it is resumed
    Pause(JobArgs),
    /// Let a paused job go on from its newest checkpoint
    Resume(JobArgs),
    /// Send a job again that failed or was canceled
    Retry(RetryArgs),
    /// Delete a job that has ended
    Delete(DeleteArgs),
    /// List jobs, newest first
    List(ListArgs),
    /// List the clusters and how they fare
    Clusters(ClustersArgs),
    /// Try a cluster: what is wrong, and how to mend it
    Preflight(PreflightArgs),
    /// Ask the service whether it is ready, as health checks of containers do
    Ready(ServerArgs),
}

#[derive(Debug, Args)]
pub(crate) struct ServeArgs {
    /// Which parts to run in this process; all processes share one database
    #[arg(long, value_enum, default_value_t = Role::All)]
    pub(crate) role: Role,
    /// The address to listen on, instead of the configured one; a worker shows only its health there
    #[arg(long, value_name = "IP:PORT")]
    pub(crate) bind: Option<SocketAddr>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Role {
    /// The API and the worker
    All,
    /// Only the API
    Api,
    /// Only the worker, which drives Slurm
    Worker,
}

impl Role {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::All => "all",
            Self::Api => "api",
            Self::Worker => "worker",
        }
    }
}

#[derive(Debug, Subcommand)]
pub(crate) enum TokenCommand {
    /// Make a token. It is printed once and stored only as a hash
    Create(TokenArgs),
    /// Show the tokens there are: whose, what they allow, until when, and when they were last used
    List(TokenListArgs),
    /// Make a token useless, for good, within seconds
    Revoke(TokenRevokeArgs),
}

#[derive(Debug, Args)]
pub(crate) struct TokenListArgs {
    /// Only those of this owner
    #[arg(long)]
    pub(crate) owner: Option<String>,
    /// Print a JSON document
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct TokenRevokeArgs {
    /// The token's id, or its name if no other one in use has it
    pub(crate) token: String,
}

#[derive(Debug, Args)]
pub(crate) struct TokenArgs {
    /// Whose jobs its bearer sees and sends
    #[arg(long)]
    pub(crate) owner: String,
    /// What it allows
    #[arg(long, value_enum, value_delimiter = ',', default_value = "read,write")]
    pub(crate) scope: Vec<Scope>,
    /// A name to tell it from the owner's others [default: the owner]
    #[arg(long)]
    pub(crate) name: Option<String>,
    /// How long it is valid, such as 90d [default: for ever]
    #[arg(long, value_parser = duration, value_name = "DURATION")]
    pub(crate) expires_in: Option<Duration>,
    /// Who is told of each change of the status of its jobs, unless they name somebody themselves
    #[arg(long, value_name = "URL", requires = "webhook_secret_file")]
    pub(crate) webhook_url: Option<String>,
    /// A file with the secret that signs what is told: `whsec_` and 24 to 64 random bytes in base64
    #[arg(long, value_name = "FILE", requires = "webhook_url")]
    pub(crate) webhook_secret_file: Option<PathBuf>,
    /// Print a JSON document instead of the bare token
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Scope {
    /// Look at the owner's jobs
    Read,
    /// Send and change the owner's jobs
    Write,
    /// Everything, on everybody's jobs
    Admin,
}

/// How to reach the service.
#[derive(Debug, Args)]
pub(crate) struct ServerArgs {
    /// Where the service is
    #[arg(long, env = "TAO_SLURM_URL", default_value = DEFAULT_URL)]
    pub(crate) url: String,
    /// The token to call it with
    #[arg(long, env = "TAO_SLURM_TOKEN", hide_env_values = true)]
    pub(crate) token: Option<SecretString>,
    /// Print the service's own document
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct SubmitArgs {
    /// The job as JSON; `-` reads standard input
    pub(crate) file: PathBuf,
    /// Follow the job to its end
    #[arg(long)]
    pub(crate) watch: bool,
    #[command(flatten)]
    pub(crate) server: ServerArgs,
}

#[derive(Debug, Args)]
pub(crate) struct ValidateArgs {
    /// The job as JSON; `-` reads standard input
    pub(crate) file: PathBuf,
    /// Ask the cluster too: whether Slurm would take the script, and whether the data are there
    #[arg(long)]
    pub(crate) live: bool,
    #[command(flatten)]
    pub(crate) server: ServerArgs,
}

#[derive(Debug, Args)]
pub(crate) struct StatusArgs {
    /// The job's id
    pub(crate) id: JobId,
    /// Follow the job to its end; the exit code tells how it ended
    #[arg(long)]
    pub(crate) watch: bool,
    #[command(flatten)]
    pub(crate) server: ServerArgs,
}

#[derive(Debug, Args)]
pub(crate) struct LogsArgs {
    /// The job's id
    pub(crate) id: JobId,
    /// Which logs [default: all; with --offset, out]
    #[arg(long, value_enum)]
    pub(crate) stream: Option<Stream>,
    /// The logs of a role's tasks, such as policy, instead of the job's own
    #[arg(long)]
    pub(crate) role: Option<String>,
    /// Only this task of the role, counted from 0
    #[arg(long, value_name = "NUMBER", requires = "role")]
    pub(crate) task: Option<u32>,
    /// Which attempt, counted from 1 [default: the newest]
    #[arg(long, value_name = "NUMBER")]
    pub(crate) attempt: Option<u32>,
    /// The last so many lines of each [default: the service's, 500; with --follow, the whole log]
    #[arg(long, value_name = "LINES", conflicts_with = "offset")]
    pub(crate) tail: Option<u32>,
    /// From this byte on, of one log
    #[arg(long, value_name = "BYTES")]
    pub(crate) offset: Option<u64>,
    /// At most so many bytes
    #[arg(long, value_name = "BYTES", requires = "offset", conflicts_with = "follow")]
    pub(crate) limit: Option<u64>,
    /// Go on until the job has ended, through all its further attempts
    #[arg(long, short)]
    pub(crate) follow: bool,
    #[command(flatten)]
    pub(crate) server: ServerArgs,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Stream {
    /// Standard output
    Out,
    /// Standard error
    Err,
    /// Both, one after the other
    All,
    /// Both, of the tasks of the role controller
    Controller,
    /// Both, of the tasks of the role policy
    Policy,
    /// Both, of the tasks of the role rollout
    Rollout,
}

#[derive(Debug, Args)]
pub(crate) struct RetryArgs {
    /// The job's id
    pub(crate) id: JobId,
    /// A JSON file with the values that were secret: `{"secret_env_vars": {…}, "cloud_metadata": {…}}`
    #[arg(long, value_name = "FILE")]
    pub(crate) secrets: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) server: ServerArgs,
}

#[derive(Debug, Args)]
pub(crate) struct DeleteArgs {
    /// The job's id
    pub(crate) id: JobId,
    /// Also remove its results, logs, specification and script from the cluster
    #[arg(long)]
    pub(crate) artifacts: bool,
    #[command(flatten)]
    pub(crate) server: ServerArgs,
}

#[derive(Debug, Args)]
pub(crate) struct JobArgs {
    /// The job's id
    pub(crate) id: JobId,
    #[command(flatten)]
    pub(crate) server: ServerArgs,
}

#[derive(Debug, Args)]
pub(crate) struct ClustersArgs {
    #[command(flatten)]
    pub(crate) server: ServerArgs,
}

#[derive(Debug, Args)]
pub(crate) struct PreflightArgs {
    /// The cluster's name [default: the service's default cluster]
    pub(crate) cluster: Option<domain::ClusterName>,
    #[command(flatten)]
    pub(crate) server: ServerArgs,
}

#[derive(Debug, Args)]
pub(crate) struct ListArgs {
    /// Only jobs with this status, such as Running
    #[arg(long, value_parser = status)]
    pub(crate) status: Option<Status>,
    /// At most so many
    #[arg(long, default_value_t = 20, value_parser = clap::value_parser!(u32).range(1..=200))]
    pub(crate) limit: u32,
    #[command(flatten)]
    pub(crate) server: ServerArgs,
}

fn duration(text: &str) -> Result<Duration, String> {
    humantime_serde::re::humantime::parse_duration(text)
        .map_err(|error| format!("{error}; write for example 90d"))
}

/// As typed, in any case: statuses are words with a capital.
fn status(text: &str) -> Result<Status, String> {
    let mut letters = text.chars();
    let first = letters.next().map(|letter| letter.to_ascii_uppercase());
    let spelled: String =
        first.into_iter().chain(letters.map(|letter| letter.to_ascii_lowercase())).collect();
    spelled.parse().map_err(|_| {
        "the statuses are Pending, Started, Running, Done, Error, Canceling, Canceled, Pausing, Paused, Resuming"
            .to_owned()
    })
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    #[test]
    fn the_command_line_is_consistent() {
        Cli::command().debug_assert();
    }

    #[test]
    fn a_token_in_the_environment_is_never_shown_in_help() {
        for name in ["submit", "status", "logs", "cancel", "list"] {
            let mut command = Cli::command();
            let help = command.find_subcommand_mut(name).unwrap().render_long_help().to_string();
            assert!(help.contains("[env: TAO_SLURM_TOKEN]"), "{help}");
        }
    }

    #[test]
    fn a_status_is_taken_in_any_case() {
        assert_eq!(status("running"), Ok(Status::Running));
        assert_eq!(status("DONE"), Ok(Status::Done));
        assert!(status("lost").unwrap_err().contains("Pending, Started"));
    }

    #[test]
    fn scopes_are_a_list() {
        let line =
            ["tao-slurm", "token", "create", "--owner", "a", "--scope", "read,admin", "--expires-in", "90d"];
        let Command::Token(TokenCommand::Create(token)) = Cli::parse_from(line).command else { panic!() };
        assert_eq!(token.scope, [Scope::Read, Scope::Admin]);
        assert_eq!(token.expires_in, Some(Duration::from_hours(90 * 24)));
    }
}
