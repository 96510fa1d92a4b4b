//! `tao-slurm validate`: what a job would become, and nothing sent to Slurm.

use std::process::ExitCode;

use serde::Deserialize;

use super::{
    output::{Output, remark},
    submit,
};
use crate::{
    cli::ValidateArgs,
    client::{Client, on_one_line, printable},
};

/// What of the answer is shown to a person.
#[derive(Deserialize)]
struct Validation {
    batch_script: String,
    warnings: Vec<Warning>,
    live: Option<Live>,
}

#[derive(Deserialize)]
struct Live {
    accepted: bool,
    sbatch_output: String,
    missing_paths: Vec<String>,
    unknown_paths: Vec<String>,
}

#[derive(Deserialize)]
struct Warning {
    pointer: String,
    detail: String,
}

pub(super) fn run(args: &ValidateArgs) -> anyhow::Result<ExitCode> {
    let job = submit::read(&args.file)?;
    let client = Client::new(&args.server);
    let live = if args.live { "?live=true" } else { "" };
    let answer = client.post(&format!("/jobs/validate{live}"), &job)?;
    let mut output = Output::new();
    if args.server.json {
        output.document(&answer.body)?;
        return Ok(ExitCode::SUCCESS);
    }
    let validation: Validation = client.document(&answer.body)?;
    output.bytes(printable(validation.batch_script.as_bytes()).as_bytes())?;
    for warning in validation.warnings {
        remark(&on_one_line(&format!("warning: {}: {}", warning.pointer, warning.detail)));
    }
    let Some(live) = validation.live else { return Ok(ExitCode::SUCCESS) };
    let word = if live.accepted { "would take it" } else { "would refuse it" };
    remark(&on_one_line(&format!("Slurm {word}: {}", live.sbatch_output)));
    for path in &live.missing_paths {
        remark(&on_one_line(&format!("missing: {path}")));
    }
    for path in &live.unknown_paths {
        remark(&on_one_line(&format!("cannot be looked for at the moment: {path}")));
    }
    // As a script would want it: 0 only for a job that could run.
    Ok(if live.accepted && live.missing_paths.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
