//! The arguments of `run`: a job on the command line.

use clap::Args;
use domain::ClusterName;

use super::ServerArgs;

/// The heading of the options that say what a job needs.
const RESOURCES: &str = "Resources";

#[derive(Debug, Args)]
pub(crate) struct RunArgs {
    /// The command, after `--`. A single word is a script for bash
    #[arg(required = true, last = true, value_name = "COMMAND")]
    pub(crate) command: Vec<String>,
    /// Print the job's log until it ends; the exit code tells how it ended
    #[arg(long, short)]
    pub(crate) follow: bool,
    /// Print the job as YAML, and submit nothing
    #[arg(long)]
    pub(crate) dry_run: bool,
    /// Name of the job
    #[arg(long)]
    pub(crate) name: Option<String>,
    /// Label of the job; repeatable
    #[arg(long, value_name = "KEY=VALUE", value_parser = pair)]
    pub(crate) label: Vec<(String, String)>,
    /// Container image; without one the command runs on the node itself
    #[arg(long)]
    pub(crate) image: Option<String>,
    /// Environment variable; without a value that of this command's environment; repeatable
    #[arg(long, value_name = "KEY[=VALUE]", value_parser = variable)]
    pub(crate) env: Vec<(String, Option<String>)>,
    /// Secret environment variable, with the value in this command's environment; repeatable
    #[arg(long, value_name = "KEY")]
    pub(crate) secret_env: Vec<String>,
    /// Directory that the command starts in
    #[arg(long, value_name = "DIRECTORY")]
    pub(crate) workdir: Option<String>,
    /// How the command becomes processes, such as torchrun
    #[arg(long)]
    pub(crate) launcher: Option<String>,
    /// Run a task for each number, such as 0-99, or for each combination of values, such as lr=0.1,0.01; repeatable with values
    #[arg(long, value_name = "NUMBERS|KEY=VALUES")]
    pub(crate) array: Vec<String>,
    /// GPUs of each node [default: the cluster's setting]
    #[arg(long, short, help_heading = RESOURCES)]
    pub(crate) gpus: Option<u32>,
    /// Number of nodes
    #[arg(long, short = 'N', help_heading = RESOURCES)]
    pub(crate) nodes: Option<u32>,
    /// CPUs of each task
    #[arg(long, help_heading = RESOURCES)]
    pub(crate) cpus: Option<u32>,
    /// Memory of each node, such as 64G
    #[arg(long, value_name = "SIZE", help_heading = RESOURCES)]
    pub(crate) mem: Option<String>,
    /// Time limit, such as 90m, 2h, 1day 12h, or as Slurm writes it: 1-12:00:00
    #[arg(long, short, value_name = "DURATION", value_parser = hours, help_heading = RESOURCES)]
    pub(crate) time: Option<f64>,
    /// Partition, or several separated by commas
    #[arg(long, short, help_heading = RESOURCES)]
    pub(crate) partition: Option<String>,
    /// Slurm account to charge
    #[arg(long, short = 'A', help_heading = RESOURCES)]
    pub(crate) account: Option<String>,
    /// Cluster [default: the service's default cluster]
    #[arg(long, help_heading = RESOURCES)]
    pub(crate) cluster: Option<ClusterName>,
    #[command(flatten)]
    pub(crate) server: ServerArgs,
}

fn pair(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((key, value)) if !key.is_empty() => Ok((key.to_owned(), value.to_owned())),
        _ => Err("write KEY=VALUE".to_owned()),
    }
}

fn variable(text: &str) -> Result<(String, Option<String>), String> {
    match text.split_once('=') {
        Some(("", _)) => Err("the name is missing; write KEY=VALUE".to_owned()),
        Some((key, value)) => Ok((key.to_owned(), Some(value.to_owned()))),
        None => Ok((text.to_owned(), None)),
    }
}

/// The duration in hours. Slurm's forms with a colon are those of sbatch(1): `MM:SS`, `HH:MM:SS`, `D-HH`, `D-HH:MM`, `D-HH:MM:SS`.
pub(super) fn hours(text: &str) -> Result<f64, String> {
    let seconds = match slurm_seconds(text) {
        Some(seconds) => seconds,
        None => humantime_serde::re::humantime::parse_duration(text)
            .map_err(|error| format!("{error}; write such as 90m, 2h or 1-12:00:00"))?
            .as_secs_f64(),
    };
    if seconds < 1.0 {
        Err("the time limit must be at least a second".to_owned())
    } else {
        Ok(seconds / 3600.0)
    }
}

fn slurm_seconds(text: &str) -> Option<f64> {
    let (days, rest) = match text.split_once('-') {
        Some((days, rest)) => (Some(days.parse::<u16>().ok()?), rest),
        None if text.contains(':') => (None, text),
        None => return None,
    };
    let parts: Vec<f64> =
        rest.split(':').map(|part| part.parse::<u32>().map(f64::from)).collect::<Result<_, _>>().ok()?;
    let (hours, minutes, seconds) = match (days, parts.as_slice()) {
        (_, [hours, minutes, seconds]) => (*hours, *minutes, *seconds),
        (Some(_), [hours, minutes]) => (*hours, *minutes, 0.0),
        (Some(_), [hours]) => (*hours, 0.0, 0.0),
        (None, [minutes, seconds]) => (0.0, *minutes, *seconds),
        _ => return None,
    };
    Some(f64::from(days.unwrap_or(0)) * 86_400.0 + hours * 3600.0 + minutes * 60.0 + seconds)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_limit_is_a_duration_or_as_slurm_writes_it() {
        for (text, expected) in [
            ("90m", 1.5),
            ("2h", 2.0),
            ("1day 12h", 36.0),
            ("1-12:00:00", 36.0),
            ("1-12", 36.0),
            ("1-12:30", 36.5),
            ("01:30:00", 1.5),
            ("90:00", 1.5),
        ] {
            let found = hours(text).unwrap();
            assert!((found - expected).abs() < 1e-9, "{text}: {found}");
        }
        for wrong in ["90", "", "1-", "0s", "1:2:3:4", "-1h", "two hours"] {
            assert!(hours(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn variables_have_a_name() {
        assert_eq!(variable("A=b=c"), Ok(("A".to_owned(), Some("b=c".to_owned()))));
        assert_eq!(variable("A"), Ok(("A".to_owned(), None)));
        assert!(variable("=b").is_err() && pair("a").is_err() && pair("=a").is_err());
    }
}
