//! `tao-slurm delete`: a job that has ended is forgotten.

use std::process::ExitCode;

use super::output::Output;
use crate::{cli::DeleteArgs, client::Client};

pub(super) fn run(args: &DeleteArgs) -> anyhow::Result<ExitCode> {
    let client = Client::new(&args.server);
    let query = if args.artifacts { "?artifacts=true" } else { "" };
    client.delete(&format!("/jobs/{}{query}", args.id))?;
    if !args.server.json {
        let rest = if args.artifacts { "; the cluster removes what it left there" } else { "" };
        Output::new().line(&format!("{} deleted{rest}", args.id))?;
    }
    Ok(ExitCode::SUCCESS)
}
