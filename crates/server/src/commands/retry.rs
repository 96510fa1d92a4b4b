//! `tao-slurm retry`: a job that failed or was canceled goes again, with its secrets if it had any.

use std::process::ExitCode;

use anyhow::Context;

use super::output::Output;
use crate::{
    cli::RetryArgs,
    client::{Client, StatusDocument},
};

pub(super) fn run(args: &RetryArgs) -> anyhow::Result<ExitCode> {
    let client = Client::new(&args.server);
    let body = match &args.secrets {
        // Secrets come in a file: an argument would stand in the process list for everybody.
        Some(path) => std::fs::read(path).with_context(|| format!("cannot read {}", path.display()))?,
        None => Vec::new(),
    };
    let answer = client.post(&format!("/jobs/{}/retry", args.id), &body)?;
    let mut output = Output::new();
    if args.server.json {
        output.document(&answer.body)?;
    } else {
        output.line(&client.document::<StatusDocument>(&answer.body)?.line())?;
    }
    Ok(ExitCode::SUCCESS)
}
