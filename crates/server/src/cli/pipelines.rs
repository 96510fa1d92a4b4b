//! The arguments of `pipeline`.

use std::path::PathBuf;

use clap::{Args, Subcommand};
use domain::PipelineId;

use super::ServerArgs;

/// The longest `Idempotency-Key` that the service accepts.
const LONGEST_KEY: usize = 255;

#[derive(Debug, Subcommand)]
pub(crate) enum PipelineCommand {
    /// Submit a pipeline, and print its ID and its jobs
    ///
    /// Example: tao-slurm pipeline submit pipeline.yaml --watch
    Submit(PipelineSubmitArgs),
    /// Show the jobs of a pipeline: what each one needs, its status and why it waits
    Status(PipelineStatusArgs),
    /// List pipelines, newest first
    List(PipelineListArgs),
    /// Cancel all jobs of a pipeline that have not ended
    Cancel(PipelineArgs),
    /// Run the failed and canceled jobs of a pipeline again, and those that were skipped because of them
    Retry(PipelineRetryArgs),
}

#[derive(Debug, Args)]
pub(crate) struct PipelineArgs {
    /// ID of the pipeline
    pub(crate) id: PipelineId,
    #[command(flatten)]
    pub(crate) server: ServerArgs,
}

#[derive(Debug, Args)]
pub(crate) struct PipelineSubmitArgs {
    /// JSON or YAML file with the pipeline; `-` reads standard input
    pub(crate) file: PathBuf,
    /// Show the jobs until the pipeline ends; the exit code tells how it ended
    #[arg(long)]
    pub(crate) watch: bool,
    /// A repeated request with this key stores nothing and returns the pipeline of the first one
    #[arg(long, value_name = "KEY", value_parser = key)]
    pub(crate) idempotency_key: Option<String>,
    #[command(flatten)]
    pub(crate) server: ServerArgs,
}

#[derive(Debug, Args)]
pub(crate) struct PipelineStatusArgs {
    #[command(flatten)]
    pub(crate) pipeline: PipelineArgs,
    /// Show the jobs until the pipeline ends; the exit code tells how it ended
    #[arg(long)]
    pub(crate) watch: bool,
}

#[derive(Debug, Args)]
pub(crate) struct PipelineListArgs {
    /// Maximum number of pipelines, at most 200
    #[arg(long, default_value_t = 20, value_parser = clap::value_parser!(u32).range(1..=200))]
    pub(crate) limit: u32,
    #[command(flatten)]
    pub(crate) server: ServerArgs,
}

#[derive(Debug, Args)]
pub(crate) struct PipelineRetryArgs {
    #[command(flatten)]
    pub(crate) pipeline: PipelineArgs,
    /// JSON or YAML file with the secret values of its jobs, which the service deletes when a job ends: `{"jobs": {"NAME": {"secret_env_vars": {…}}}}`
    #[arg(long, value_name = "FILE")]
    pub(crate) secrets: Option<PathBuf>,
}

fn key(text: &str) -> Result<String, String> {
    let is_printable = text.bytes().all(|byte| (b' '..=b'~').contains(&byte));
    if is_printable && (1..=LONGEST_KEY).contains(&text.len()) {
        return Ok(text.to_owned());
    }
    Err(format!("use 1 to {LONGEST_KEY} printable ASCII characters"))
}
