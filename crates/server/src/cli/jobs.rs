//! The arguments of the commands that submit, show and change jobs.

use std::path::PathBuf;

use clap::Args;
use domain::{Status, TaskSelection, TaskStatus};
use strum::IntoEnumIterator;

use super::{JobArgs, ServerArgs};

#[derive(Debug, Args)]
pub(crate) struct SubmitArgs {
    /// JSON or YAML file with the job; `-` reads standard input
    pub(crate) file: PathBuf,
    /// Show the status until the job ends; the exit code tells how it ended
    #[arg(long)]
    pub(crate) watch: bool,
    #[command(flatten)]
    pub(crate) server: ServerArgs,
}

#[derive(Debug, Args)]
pub(crate) struct ValidateArgs {
    /// JSON or YAML file with the job; `-` reads standard input
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
    #[arg(long, conflicts_with = "json")]
    pub(crate) csv: bool,
}

#[derive(Debug, Args)]
pub(crate) struct CancelArgs {
    #[command(flatten)]
    pub(crate) job: JobArgs,
    /// Cancel only these tasks of the job's array: pending, running, or numbers such as 3,7-9
    #[arg(long)]
    pub(crate) tasks: Option<TaskSelection>,
}

#[derive(Debug, Args)]
pub(crate) struct RetryArgs {
    #[command(flatten)]
    pub(crate) job: JobArgs,
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
    pub(crate) job: JobArgs,
    /// Also delete the job's results, logs, specification and script on the cluster
    #[arg(long)]
    pub(crate) artifacts: bool,
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

pub(super) fn status(text: &str) -> Result<Status, String> {
    Status::iter().find(|status| status.to_string().eq_ignore_ascii_case(text)).ok_or_else(|| {
        let all: Vec<_> = Status::iter().map(|status| status.to_string()).collect();
        format!("unknown status; use one of {}", all.join(", "))
    })
}

fn task_status(text: &str) -> Result<TaskStatus, String> {
    text.to_ascii_lowercase().parse().map_err(|_| {
        let all: Vec<&str> = TaskStatus::iter().map(Into::into).collect();
        format!("unknown state; use one of {}", all.join(", "))
    })
}
