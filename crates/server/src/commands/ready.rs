//! `tao-slurm ready`: whether the service is of use. An image without a shell or curl has its health check in this.

use std::process::ExitCode;

use super::output::Output;
use crate::{cli::ServerArgs, client::Client};

pub(super) fn run(server: &ServerArgs) -> anyhow::Result<ExitCode> {
    let answer = Client::new(server).get("/readyz", None)?;
    let mut output = Output::new();
    if server.json {
        output.document(&answer.body)?;
    } else {
        output.bytes(b"ready\n")?;
    }
    Ok(ExitCode::SUCCESS)
}
