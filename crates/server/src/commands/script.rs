//! `tao-slurm script`: a job's batch script, as Slurm got it.

use std::process::ExitCode;

use super::output::Output;
use crate::{
    cli::ScriptArgs,
    client::{Client, printable},
};

pub(super) fn run(args: &ScriptArgs) -> anyhow::Result<ExitCode> {
    let attempt = args.attempt.map(|number| format!("?attempt={number}")).unwrap_or_default();
    let answer = Client::new(&args.server).get(&format!("/jobs/{}/script{attempt}", args.id), None)?;
    let mut output = Output::new();
    if args.server.json {
        let document = serde_json::json!({ "script": String::from_utf8_lossy(&answer.body) });
        output.line(&document.to_string())?;
    } else if output.is_terminal {
        output.bytes(printable(&answer.body).as_bytes())?;
    } else {
        output.bytes(&answer.body)?;
    }
    Ok(ExitCode::SUCCESS)
}
