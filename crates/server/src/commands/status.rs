//! `tao-slurm status`: where a job stands, once or to its end.

use std::process::ExitCode;

use super::{output::Output, watch};
use crate::{
    cli::StatusArgs,
    client::{Client, StatusDocument},
};

pub(super) fn run(args: &StatusArgs) -> anyhow::Result<ExitCode> {
    let client = Client::new(&args.server);
    let mut output = Output::new();
    if args.watch {
        return watch::to_the_end(&client, &args.id.to_string(), args.server.json, output);
    }
    let answer = client.get(&format!("/jobs/{}/status", args.id), None)?;
    if args.server.json {
        output.document(&answer.body)?;
    } else {
        output.line(&client.document::<StatusDocument>(&answer.body)?.line())?;
    }
    Ok(ExitCode::SUCCESS)
}
