//! `tao-slurm openapi`: the document, from the code alone.

use std::process::ExitCode;

use super::output::Output;

pub(super) fn run() -> anyhow::Result<ExitCode> {
    Output::new().line(&api::openapi().to_pretty_json()?)?;
    Ok(ExitCode::SUCCESS)
}
