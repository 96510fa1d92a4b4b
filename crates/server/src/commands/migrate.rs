//! `tao-slurm migrate`: for those who do not want it done at the start of the service.

use std::process::ExitCode;

use super::output::remark;
use crate::{
    config::{Config, Environment},
    database::connect::Database,
};

pub(super) async fn run(config: Config, environment: Environment) -> anyhow::Result<ExitCode> {
    Database::open_current(&config, &environment).await?.close().await?;
    remark("the database is up to date");
    Ok(ExitCode::SUCCESS)
}
