//! `tao-slurm cancel`, `pause`, `resume`: each may be repeated; the cluster's word comes later, in the status.

use std::process::ExitCode;

use super::output::Output;
use crate::{
    cli::JobArgs,
    client::{Client, StatusDocument},
};

/// What is wished of the job.
#[derive(Debug, Clone, Copy)]
pub(super) enum Wish {
    Cancel,
    Pause,
    Resume,
}

impl Wish {
    /// The last word of its path.
    const fn word(self) -> &'static str {
        match self {
            Self::Cancel => "cancel",
            Self::Pause => "pause",
            Self::Resume => "resume",
        }
    }
}

pub(super) fn run(wish: Wish, args: &JobArgs) -> anyhow::Result<ExitCode> {
    let client = Client::new(&args.server);
    let answer = client.post(&format!("/jobs/{}/{}", args.id, wish.word()), b"")?;
    let mut output = Output::new();
    if args.server.json {
        output.document(&answer.body)?;
    } else {
        output.line(&client.document::<StatusDocument>(&answer.body)?.line())?;
    }
    Ok(ExitCode::SUCCESS)
}
