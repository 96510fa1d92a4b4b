//! The arguments of the commands that submit, show and change jobs.

use std::path::{Path, PathBuf};

use chrono::{DateTime, NaiveDate, Utc};
use clap::Args;
use domain::{ClusterName, Status, TaskSelection, TaskStatus};
use serde_json::Value;
use strum::IntoEnumIterator;

use super::{JobArgs, JobsArgs, ServerArgs};

#[derive(Debug, Args)]
pub(crate) struct SubmitArgs {
    /// JSON or YAML file with the job; `-` reads standard input
    #[arg(required_unless_present = "named")]
    file: Option<PathBuf>,
    /// The same
    #[arg(
        short = 'f',
        long = "file",
        id = "named",
        value_name = "FILE",
        conflicts_with = "file",
        hide_long_help = true
    )]
    named: Option<PathBuf>,
    /// Set a field, such as name=night or steps.0.name=train; numbers, true, false, null, lists and objects are JSON; repeatable
    #[arg(long, value_name = "FIELD=VALUE", value_parser = setting)]
    pub(crate) set: Vec<(String, Value)>,
    /// Show the status until the job ends; the exit code tells how it ended
    #[arg(long, short)]
    pub(crate) watch: bool,
    /// Print the job's log until it ends; the exit code tells how it ended
    #[arg(long, conflicts_with = "watch")]
    pub(crate) follow: bool,
    #[command(flatten)]
    pub(crate) server: ServerArgs,
}

impl SubmitArgs {
    pub(crate) fn file(&self) -> &Path {
        self.file.as_deref().or(self.named.as_deref()).unwrap_or(Path::new("-"))
    }
}

fn setting(text: &str) -> Result<(String, Value), String> {
    let (path, value) = text.split_once('=').ok_or("write FIELD=VALUE, such as resources.num_nodes=2")?;
    if path.is_empty() || path.split('.').any(str::is_empty) {
        return Err("write the field as resources.num_nodes or steps.0.name".to_owned());
    }
    let value = match serde_json::from_str(value) {
        // A text in quotes is as it is written.
        Ok(Value::String(_)) | Err(_) => Value::from(value),
        Ok(value) => value,
    };
    Ok((path.to_owned(), value))
}

#[derive(Debug, Args)]
pub(crate) struct ValidateArgs {
    /// JSON or YAML file with the job; `-` reads standard input
    pub(crate) file: PathBuf,
    /// Check on the cluster, too: test the script with Slurm and check that the inputs exist
    #[arg(long)]
    pub(crate) live: bool,
    /// Print the batch script, not a summary
    #[arg(long)]
    pub(crate) script: bool,
    #[command(flatten)]
    pub(crate) server: ServerArgs,
}

#[derive(Debug, Args)]
pub(crate) struct StatusArgs {
    #[command(flatten)]
    pub(crate) jobs: JobsArgs,
    /// Show the status until the job ends; the exit code tells how it ended
    #[arg(long, short)]
    pub(crate) watch: bool,
}

#[derive(Debug, Args)]
pub(crate) struct WaitArgs {
    #[command(flatten)]
    pub(crate) jobs: JobsArgs,
    /// Give up after this time, such as 2h; the exit code is 124, and the jobs go on
    #[arg(long, value_name = "DURATION", value_parser = super::run::hours)]
    pub(crate) timeout: Option<f64>,
}

#[derive(Debug, Args)]
pub(crate) struct TasksArgs {
    #[command(flatten)]
    pub(crate) job: JobArgs,
    /// List only tasks in this state, such as error
    #[arg(long, value_parser = task_status)]
    pub(crate) status: Option<TaskStatus>,
}

#[derive(Debug, Args)]
pub(crate) struct ResultsArgs {
    #[command(flatten)]
    pub(crate) job: JobArgs,
    /// Print CSV: one row for each task, one column for each result
    #[arg(long, conflicts_with = "output")]
    pub(crate) csv: bool,
}

#[derive(Debug, Args)]
pub(crate) struct CancelArgs {
    #[command(flatten)]
    pub(crate) jobs: JobsArgs,
    /// Cancel only these tasks of the job's array: pending, running, or numbers such as 3,7-9
    #[arg(long)]
    pub(crate) tasks: Option<TaskSelection>,
}

#[derive(Debug, Args)]
pub(crate) struct RetryArgs {
    #[command(flatten)]
    pub(crate) jobs: JobsArgs,
    /// JSON or YAML file with the job's secret values, which the service deletes when a job ends: `{"secret_env_vars": {…}, "cloud_metadata": {…}}`
    #[arg(long, value_name = "FILE")]
    pub(crate) secrets: Option<PathBuf>,
    /// Retry only these tasks of the job's array: failed, canceled, or numbers such as 3,7-9 [default: all that are not done]
    #[arg(long)]
    pub(crate) tasks: Option<TaskSelection>,
}

#[derive(Debug, Args)]
pub(crate) struct DeleteArgs {
    #[command(flatten)]
    pub(crate) jobs: JobsArgs,
    /// Also delete the job's results, logs, specification and script on the cluster
    #[arg(long)]
    pub(crate) artifacts: bool,
}

/// The heading of the options that choose jobs.
const FILTERS: &str = "Filters";

#[derive(Debug, Args)]
pub(crate) struct ListArgs {
    /// Only jobs with this status, such as Running; repeatable, as the others with a value
    #[arg(long, short, value_parser = status, help_heading = FILTERS)]
    pub(crate) status: Vec<Status>,
    /// Only jobs whose name or label has this text, or whose id begins with it
    #[arg(long, short, value_name = "TEXT", help_heading = FILTERS)]
    pub(crate) q: Option<String>,
    /// Only jobs with this label, as KEY=VALUE; all must match
    #[arg(long, short, value_name = "KEY=VALUE", value_parser = label, help_heading = FILTERS)]
    pub(crate) label: Vec<String>,
    /// Only jobs of this owner; needs the scope admin for others than yourself
    #[arg(long, help_heading = FILTERS)]
    pub(crate) owner: Vec<String>,
    /// Only jobs on this cluster
    #[arg(long, help_heading = FILTERS)]
    pub(crate) cluster: Vec<ClusterName>,
    /// Only jobs in this partition
    #[arg(long, short, help_heading = FILTERS)]
    pub(crate) partition: Vec<String>,
    /// Only jobs that failed by this rule, such as cuda-out-of-memory
    #[arg(long, help_heading = FILTERS)]
    pub(crate) rule: Vec<String>,
    /// Only TAO jobs with this network architecture
    #[arg(long, value_name = "ARCHITECTURE", help_heading = FILTERS)]
    pub(crate) network_arch: Option<String>,
    /// Only TAO jobs with this action, such as train
    #[arg(long, help_heading = FILTERS)]
    pub(crate) action: Option<String>,
    /// Only jobs accepted since: a duration such as 7d, a date, or a time (RFC 3339)
    #[arg(long, value_name = "TIME", help_heading = FILTERS)]
    pub(crate) since: Option<Moment>,
    /// Only jobs accepted before
    #[arg(long, value_name = "TIME", help_heading = FILTERS)]
    pub(crate) until: Option<Moment>,
    /// The most jobs; a message says how to get the others
    #[arg(long, short = 'n', default_value_t = 50, value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) limit: u32,
    /// All jobs
    #[arg(long, short, conflicts_with = "limit")]
    pub(crate) all: bool,
    /// The oldest jobs first
    #[arg(long)]
    pub(crate) oldest: bool,
    /// Show the list again and again, until Ctrl-C
    #[arg(long, short)]
    pub(crate) watch: bool,
    #[command(flatten)]
    pub(crate) server: ServerArgs,
}

/// A point in time: as it is, or so long ago.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Moment {
    At(DateTime<Utc>),
    Ago(std::time::Duration),
}

impl Moment {
    pub(crate) fn before(&self, now: DateTime<Utc>) -> DateTime<Utc> {
        match self {
            Self::At(time) => *time,
            Self::Ago(duration) => chrono::TimeDelta::from_std(*duration)
                .ok()
                .and_then(|duration| now.checked_sub_signed(duration))
                .unwrap_or(DateTime::UNIX_EPOCH),
        }
    }
}

impl std::str::FromStr for Moment {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if let Ok(duration) = humantime_serde::re::humantime::parse_duration(text) {
            return Ok(Self::Ago(duration));
        }
        let midnight = |date: NaiveDate| date.and_time(chrono::NaiveTime::MIN).and_utc();
        text.parse::<DateTime<Utc>>()
            .or_else(|_| text.parse().map(midnight))
            .map(Self::At)
            .map_err(|_| "write a duration such as 7d, a date such as 2026-11-28, or a time such as 2026-11-28T08:00:00Z".to_owned())
    }
}

fn label(text: &str) -> Result<String, String> {
    match text.split_once('=').or_else(|| text.split_once(':')) {
        Some((key, value)) if !key.is_empty() => Ok(format!("{key}:{value}")),
        _ => Err("write KEY=VALUE".to_owned()),
    }
}

pub(super) fn status(text: &str) -> Result<Status, String> {
    Status::iter().find(|status| status.to_string().eq_ignore_ascii_case(text)).ok_or_else(|| {
        let all: Vec<_> = Status::iter().map(|status| status.to_string()).collect();
        format!("unknown status{}; use one of {}", meant(text, &all), all.join(", "))
    })
}

fn task_status(text: &str) -> Result<TaskStatus, String> {
    text.to_ascii_lowercase().parse().map_err(|_| {
        let all: Vec<String> = TaskStatus::iter().map(|status| <&str>::from(status).to_owned()).collect();
        format!("unknown state{}; use one of {}", meant(text, &all), all.join(", "))
    })
}

/// The word that is written nearly so.
fn meant(text: &str, all: &[String]) -> String {
    let distance = |word: &String| strsim::damerau_levenshtein(&word.to_lowercase(), &text.to_lowercase());
    let near = all.iter().map(|word| (distance(word), word)).min_by_key(|(distance, _)| *distance);
    near.filter(|(distance, _)| *distance <= 2)
        .map(|(_, word)| format!(" (did you mean {word}?)"))
        .unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_setting_has_a_value_of_its_kind() {
        for (text, value) in [
            ("a.b=2", json!(2)),
            ("a=true", json!(true)),
            ("a=x=y", json!("x=y")),
            ("a=[1]", json!([1])),
            ("a=\"7\"", json!("\"7\"")),
            ("a=", json!("")),
        ] {
            assert_eq!(setting(text).unwrap().1, value, "{text}");
        }
        assert!(setting("a").is_err() && setting("a..b=1").is_err() && setting("=1").is_err());
    }

    #[test]
    fn a_time_is_a_duration_a_date_or_a_time() {
        let now = "2026-11-28T12:00:00Z".parse().unwrap();
        for (text, time) in [
            ("7d", "2026-11-21T12:00:00Z"),
            ("2026-11-20", "2026-11-20T00:00:00Z"),
            ("2026-11-20T08:00:00+02:00", "2026-11-20T06:00:00Z"),
        ] {
            assert_eq!(
                text.parse::<Moment>().unwrap().before(now),
                time.parse::<DateTime<Utc>>().unwrap(),
                "{text}"
            );
        }
        assert!("yesterday".parse::<Moment>().is_err());
    }

    #[test]
    fn a_misspelt_status_is_recognized() {
        assert!(status("Runing").unwrap_err().contains("did you mean Running?"));
        assert!(!status("xyz").unwrap_err().contains("did you mean"));
    }
}
