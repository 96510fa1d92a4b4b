//! `tao-slurm cancel`: may be repeated; the job is canceled when the cluster says so.

use std::process::ExitCode;

use super::output::Output;
use crate::{
    cli::JobArgs,
    client::{Client, StatusDocument},
};

pub(super) fn run(args: &JobArgs) -> anyhow::Result<ExitCode> {
    let client = Client::new(&args.server);
    let answer = client.post(&format!("/jobs/{}/cancel", args.id), b"")?;
    let mut output = Output::new();
    if args.server.json {
        output.document(&answer.body)?;
    } else {
        output.line(&client.document::<StatusDocument>(&answer.body)?.line())?;
    }
    Ok(ExitCode::SUCCESS)
}
