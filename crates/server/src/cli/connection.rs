//! The arguments of all commands that call the API: which service, which jobs, and what is printed.

use std::{fmt, str::FromStr};

use clap::{Args, ValueEnum};
use domain::JobId;
use secrecy::SecretString;

/// The default address of the service.
pub(crate) const DEFAULT_URL: &str = "http://127.0.0.1:8080";

/// The heading of the client's common options in help texts.
const CONNECTION: &str = "Connection and output";

/// The shortest beginning of an id that names a job.
const SHORTEST_PREFIX: usize = 4;

#[derive(Debug, Default, Args)]
pub(crate) struct ServerArgs {
    /// URL of the service [default: that of the profile, or port 8080 of this machine] [env: `TAO_SLURM_URL`]
    #[arg(long, help_heading = CONNECTION)]
    pub(crate) url: Option<String>,
    /// API token [default: that of the profile] [env: `TAO_SLURM_TOKEN`]
    #[arg(long, help_heading = CONNECTION)]
    pub(crate) token: Option<SecretString>,
    /// Profile in ~/.config/tao-slurm/config.toml; `tao-slurm login` writes it [env: `TAO_SLURM_PROFILE`]
    #[arg(long, help_heading = CONNECTION)]
    pub(crate) profile: Option<String>,
    /// What to print
    #[arg(long, short, value_enum, default_value_t, hide_default_value = true, help_heading = CONNECTION)]
    pub(crate) output: Format,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum Format {
    /// Text for a person
    #[default]
    Text,
    /// The same with more columns
    Wide,
    /// The ids or names alone, one on each line
    Name,
    /// The JSON document of the API
    Json,
    /// The same as YAML
    Yaml,
}

impl Format {
    /// Whether programs read it.
    pub(crate) const fn is_document(self) -> bool {
        matches!(self, Self::Json | Self::Yaml)
    }
}

/// What a user calls a job: its id, the beginning of its id, or its name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum JobRef {
    Id(JobId),
    /// Lower case: also a name, unless a job's id begins with it.
    Prefix(String),
    Name(String),
}

impl FromStr for JobRef {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        if let Ok(id) = text.parse() {
            return Ok(Self::Id(id));
        }
        let text = text.trim();
        if text.is_empty() {
            return Err(
                "give the id of a job, the beginning of its id, or its name; `tao-slurm list` shows them",
            );
        }
        let is_prefix = text.len() >= SHORTEST_PREFIX
            && text.len() < 36
            && text.bytes().all(|byte| byte.is_ascii_hexdigit() || byte == b'-');
        Ok(if is_prefix { Self::Prefix(text.to_ascii_lowercase()) } else { Self::Name(text.to_owned()) })
    }
}

impl fmt::Display for JobRef {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Id(id) => id.fmt(f),
            Self::Prefix(text) | Self::Name(text) => f.write_str(text),
        }
    }
}

#[derive(Debug, Args)]
pub(crate) struct JobArgs {
    /// The job: its id, the beginning of its id, or its name
    #[arg(value_name = "JOB")]
    pub(crate) job: JobRef,
    #[command(flatten)]
    pub(crate) server: ServerArgs,
}

#[derive(Debug, Args)]
pub(crate) struct JobsArgs {
    /// The jobs: ids, beginnings of ids, or names
    #[arg(required = true, value_name = "JOB")]
    pub(crate) jobs: Vec<JobRef>,
    #[command(flatten)]
    pub(crate) server: ServerArgs,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_job_is_named_by_its_id_the_beginning_of_it_or_its_name() {
        let id = "01a21687-3d58-727b-af43-d5f40bfcf423";
        assert_eq!(id.parse(), Ok(JobRef::Id(id.parse().unwrap())));
        assert_eq!("01A21687-3d".parse(), Ok(JobRef::Prefix("01a21687-3d".to_owned())));
        for name in ["01a", "train", "01a2 1687"] {
            assert_eq!(name.parse(), Ok(JobRef::Name(name.to_owned())));
        }
        assert!(" ".parse::<JobRef>().is_err());
    }
}
