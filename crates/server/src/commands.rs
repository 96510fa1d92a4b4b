//! The subcommands, one a file.

mod attempts;
mod check_config;
mod clusters;
mod delete;
mod events;
mod follow;
mod list;
mod logs;
mod migrate;
mod openapi;
mod output;
mod preflight;
mod ready;
mod retry;
mod script;
mod serve;
mod status;
mod stream;
mod submit;
mod timeline;
mod token;
mod tokens;
mod validate;
mod watch;
mod wish;

use std::process::ExitCode;

use anyhow::Context;
use traces::Exporter;

use crate::{
    cli::{Cli, Command, Role, TokenCommand},
    config::{self, Config, Environment, Overrides},
    process::telemetry,
};

/// Runs the command to its end.
pub(crate) fn run(cli: Cli) -> anyhow::Result<ExitCode> {
    // An empty variable counts as unset, as everywhere.
    let file = cli.config.filter(|path| !path.as_os_str().is_empty());
    let mut overrides = Overrides { file, ..Overrides::default() };
    match cli.command {
        Command::Serve(args) => {
            match args.role {
                Role::All | Role::Api => overrides.bind = args.bind,
                Role::Worker => overrides.worker_bind = args.bind,
            }
            serving(&overrides, args.role)
        }
        Command::Migrate => with_service(&overrides, migrate::run),
        Command::Token(TokenCommand::Create(args)) => {
            with_service(&overrides, |config, environment| token::create(config, environment, args))
        }
        Command::Token(TokenCommand::List(args)) => {
            with_service(&overrides, |config, environment| tokens::list(config, environment, args))
        }
        Command::Token(TokenCommand::Revoke(args)) => {
            with_service(&overrides, |config, environment| tokens::revoke(config, environment, args))
        }
        Command::CheckConfig { example: true } => check_config::example(),
        Command::CheckConfig { .. } => check_config::run(&overrides, &Environment::of_process()),
        Command::Openapi => openapi::run(),
        Command::Submit(args) => submit::run(&args),
        Command::Validate(args) => validate::run(&args),
        Command::Status(args) => status::run(&args),
        Command::Logs(args) => logs::run(&args),
        Command::Events(args) => events::run(&args),
        Command::Attempts(args) => attempts::run(&args),
        Command::Timeline(args) => timeline::run(&args),
        Command::Script(args) => script::run(&args),
        Command::Cancel(args) => wish::run(wish::Wish::Cancel, &args),
        Command::Pause(args) => wish::run(wish::Wish::Pause, &args),
        Command::Resume(args) => wish::run(wish::Wish::Resume, &args),
        Command::Retry(args) => retry::run(&args),
        Command::Delete(args) => delete::run(&args),
        Command::List(args) => list::run(&args),
        Command::Clusters(args) => clusters::run(&args),
        Command::Preflight(args) => preflight::run(&args),
        Command::Ready(args) => ready::run(&args),
    }
}

/// Runs the service; what it has to say of its last moments reaches the collector.
fn serving(overrides: &Overrides, role: Role) -> anyhow::Result<ExitCode> {
    let environment = Environment::of_process();
    let config = config::load(overrides, &environment)?;
    let exporter = telemetry::start_traces(&config, role.name())?;
    telemetry::start_logs(&config.settings.log, exporter.as_ref())?;
    let ended = on_runtime(serve::run(config, environment, role));
    exporter.iter().for_each(Exporter::finish);
    ended
}

/// Reads the configuration, starts the logs and a runtime: what a command needs that is part of the service.
fn with_service<F: Future<Output = anyhow::Result<ExitCode>>>(
    overrides: &Overrides,
    command: impl FnOnce(Config, Environment) -> F,
) -> anyhow::Result<ExitCode> {
    let environment = Environment::of_process();
    let config = config::load(overrides, &environment)?;
    telemetry::start_logs(&config.settings.log, None)?;
    on_runtime(command(config, environment))
}

fn on_runtime(command: impl Future<Output = anyhow::Result<ExitCode>>) -> anyhow::Result<ExitCode> {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .context("cannot start the runtime")?;
    let ended = runtime.block_on(command);
    // Dropped, it would wait for threads that wait for somebody who does not answer.
    runtime.shutdown_background();
    ended
}
