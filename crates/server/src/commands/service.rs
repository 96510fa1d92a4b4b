//! Commands for operating the service: `check-config`, `migrate`, `openapi` and `ready`.

use std::process::ExitCode;

use anyhow::Context;

use super::output::{Output, note};
use crate::{
    cli::{MigrateArgs, ServerArgs},
    client::Client,
    config::{self, Config, Environment, Overrides},
    database::connect::Database,
};

pub(super) fn example_config() -> anyhow::Result<ExitCode> {
    Output::new().bytes(config::example().as_bytes())?;
    Ok(ExitCode::SUCCESS)
}

pub(super) fn check_config(overrides: &Overrides, environment: &Environment) -> anyhow::Result<ExitCode> {
    let config = config::load(overrides, environment)?;
    let mut output = Output::new();
    match &config.file {
        Some(file) => output.line(&format!("# from {} and the environment", file.display()))?,
        None => output.line("# from the environment, without a file")?,
    }
    output.line(&config::render(&config.settings))?;
    for warning in config::warnings(&config) {
        note(&format!("warning: {warning}"));
    }
    config::existing_key(&config.settings.secrets.key_file)?;
    Ok(ExitCode::SUCCESS)
}

pub(super) async fn migrate(
    config: Config,
    environment: Environment,
    args: MigrateArgs,
) -> anyhow::Result<ExitCode> {
    let database = Database::open(&config, &environment).await?;
    let changed = match args.to {
        Some(version) => database.store.migrate_back(version).await.map(|()| version),
        None => database.store.migrate().await,
    };
    database.close().await?;
    let version = changed.context("cannot change the database schema")?;
    note(&format!("the database schema is at version {version}"));
    Ok(ExitCode::SUCCESS)
}

pub(super) fn openapi() -> anyhow::Result<ExitCode> {
    Output::new().line(&serde_json::to_string_pretty(&api::openapi())?)?;
    Ok(ExitCode::SUCCESS)
}

/// The health check of an image that has neither a shell nor curl.
pub(super) fn ready(server: &ServerArgs) -> anyhow::Result<ExitCode> {
    let answer = Client::new(server).get("/readyz")?;
    let mut output = Output::new();
    if server.json {
        output.json(&answer)?;
    } else {
        output.line("ready")?;
    }
    Ok(ExitCode::SUCCESS)
}
