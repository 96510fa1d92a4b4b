//! `tao-slurm submit`: a job from a file or a pipe.

use std::{
    fs,
    io::{self, Read},
    path::Path,
    process::ExitCode,
};

use anyhow::{Context, bail};

use super::{output::Output, watch};
use crate::{
    cli::SubmitArgs,
    client::{Client, StatusDocument},
};

pub(super) fn run(args: &SubmitArgs) -> anyhow::Result<ExitCode> {
    let job = read(&args.file)?;
    let client = Client::new(&args.server);
    let answer = client.post("/jobs", &job)?;
    let stored: StatusDocument = client.document(&answer.body)?;
    let mut output = Output::new();
    if args.server.json {
        output.document(&answer.body)?;
    } else {
        output.line(&stored.id)?;
    }
    if args.watch {
        return watch::to_the_end(&client, &stored.id, args.server.json, output);
    }
    Ok(ExitCode::SUCCESS)
}

/// A job as JSON; `-` is standard input.
pub(super) fn read(file: &Path) -> anyhow::Result<Vec<u8>> {
    let mut text = Vec::new();
    if file == Path::new("-") {
        io::stdin().lock().read_to_end(&mut text).context("cannot read standard input")?;
    } else {
        text = fs::read(file).with_context(|| format!("cannot read {}", file.display()))?;
    }
    if text.trim_ascii().is_empty() {
        bail!("{} is empty; write a job as JSON into it", file.display());
    }
    Ok(text)
}
