//! Commands for operating the service: `check-config`, `migrate`, `openapi` and `ready`.

use std::process::ExitCode;

use anyhow::Context;

use super::output::{Output, note};
use crate::{
    cli::{CheckConfigArgs, MigrateArgs, ServerArgs},
    client::Client,
    config::{self, Config, Environment, Overrides},
    database::connect::Database,
};

fn example_config() -> anyhow::Result<ExitCode> {
    Output::new().bytes(config::example().as_bytes())?;
    Ok(ExitCode::SUCCESS)
}

/// The effective configuration, its warnings and a verdict.
pub(super) fn check_config(
    args: &CheckConfigArgs,
    overrides: &Overrides,
    environment: &Environment,
) -> anyhow::Result<ExitCode> {
    if args.example {
        return example_config();
    }
    let config = config::load(overrides, environment)?;
    let mut output = Output::new();
    match &config.file {
        Some(file) => output.line(&format!("# from {} and the environment", file.display()))?,
        None => output.line("# from the environment, without a file")?,
    }
    output.line(&config::render(&config.settings))?;
    let warnings = config::warnings(&config);
    for warning in &warnings {
        note(&format!("warning: {warning}"));
    }
    config::existing_key(&config.settings.secrets.key_file)?;
    let is_good = !args.strict || warnings.is_empty();
    note(&match warnings.len() {
        0 => "The configuration is valid.".to_owned(),
        1 => format!(
            "The configuration is valid, with a warning{}.",
            if is_good { "" } else { ", which --strict refuses" }
        ),
        count => format!(
            "The configuration is valid, with {count} warnings{}.",
            if is_good { "" } else { ", which --strict refuses" }
        ),
    });
    Ok(if is_good { ExitCode::SUCCESS } else { ExitCode::FAILURE })
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
    let answer = Client::new(server)?.get("/readyz")?;
    Output::new().show(server, &answer, |_: serde_json::Value| "ready\n".to_owned())
}
