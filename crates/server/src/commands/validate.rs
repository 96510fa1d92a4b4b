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
}

#[derive(Deserialize)]
struct Warning {
    pointer: String,
    detail: String,
}

pub(super) fn run(args: &ValidateArgs) -> anyhow::Result<ExitCode> {
    let job = submit::read(&args.file)?;
    let client = Client::new(&args.server);
    let answer = client.post("/jobs/validate", &job)?;
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
    Ok(ExitCode::SUCCESS)
}
