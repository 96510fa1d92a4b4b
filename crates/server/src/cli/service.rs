//! The arguments of the commands that run and set up the service.

use std::{net::SocketAddr, path::PathBuf, time::Duration};

use clap::{Args, Subcommand, ValueEnum};

use super::Format;

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
pub(crate) struct CheckConfigArgs {
    /// Print an example file instead: every setting with its default, its environment variables and a description
    #[arg(long)]
    pub(crate) example: bool,
    /// Fail if there are warnings
    #[arg(long)]
    pub(crate) strict: bool,
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
    /// What to print
    #[arg(long, short, value_enum, default_value_t, hide_default_value = true)]
    pub(crate) output: Format,
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
    /// What to print
    #[arg(long, short, value_enum, default_value_t, hide_default_value = true)]
    pub(crate) output: Format,
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

fn duration(text: &str) -> Result<Duration, String> {
    humantime_serde::re::humantime::parse_duration(text)
        .map_err(|error| format!("{error}; use a number with a unit, such as 90d"))
}
