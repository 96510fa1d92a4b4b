//! `tao-slurm check-config`: shows the effective configuration and likely problems.

use std::process::ExitCode;

use super::output::{Output, remark};
use crate::config::{self, Environment, Overrides};

pub(super) fn example() -> anyhow::Result<ExitCode> {
    Output::new().bytes(config::example().as_bytes())?;
    Ok(ExitCode::SUCCESS)
}

pub(super) fn run(overrides: &Overrides, environment: &Environment) -> anyhow::Result<ExitCode> {
    let config = config::load(overrides, environment)?;
    let mut output = Output::new();
    match &config.file {
        Some(file) => output.line(&format!("# from {} and the environment", file.display()))?,
        None => output.line("# from the environment, without a file")?,
    }
    output.line(&config::render(&config.settings))?;
    for warning in config::warnings(&config) {
        remark(&format!("warning: {warning}"));
    }
    config::existing_key(&config.settings.secrets.key_file)?;
    Ok(ExitCode::SUCCESS)
}
