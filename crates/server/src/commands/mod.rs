//! The subcommands, by topic.

mod change;
mod chosen;
mod clusters;
mod events;
mod failed;
mod follow;
mod get;
mod import;
mod interrupt;
mod list;
mod log_lines;
mod login;
mod logs;
mod output;
mod pipelines;
mod request_file;
mod results;
mod run;
mod serve;
mod service;
mod shell;
mod show;
mod submit;
mod tasks;
mod token;
mod usage;
mod wait;

use std::process::ExitCode;

use anyhow::Context;
use traces::Exporter;

use crate::{
    cli::{Cli, Command, Role, TokenCommand},
    config::{self, Config, Environment, Overrides},
    process::telemetry,
};

pub(crate) fn run(cli: Cli) -> anyhow::Result<ExitCode> {
    // An empty environment variable counts as unset.
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
        Command::Migrate(args) => {
            with_service(&overrides, |config, environment| service::migrate(config, environment, args))
        }
        Command::Token(TokenCommand::Create(args)) => {
            with_service(&overrides, |config, environment| token::create(config, environment, args))
        }
        Command::Token(TokenCommand::List(args)) => {
            with_service(&overrides, |config, environment| token::list(config, environment, args))
        }
        Command::Token(TokenCommand::Revoke(args)) => {
            with_service(&overrides, |config, environment| token::revoke(config, environment, args))
        }
        Command::CheckConfig(args) => service::check_config(&args, &overrides, &Environment::of_process()),
        Command::Openapi => service::openapi(),
        Command::Login(args) => login::run(&args),
        Command::Run(args) => run::run(&args, &Environment::of_process()),
        Command::Submit(args) => submit::submit(&args),
        Command::Validate(args) => submit::validate(&args),
        Command::Get(args) => get::run(&args),
        Command::Status(args) => show::status(&args),
        Command::Wait(args) => wait::run(&args),
        Command::Logs(args) => logs::run(&args),
        Command::Events(args) => events::run(&args),
        Command::Attempts(args) => show::attempts(&args),
        Command::Timeline(args) => show::timeline(&args),
        Command::Tasks(args) => tasks::run(&args),
        Command::Results(args) => results::run(&args),
        Command::Script(args) => show::script(&args),
        Command::Cancel(args) => change::cancel(&args),
        Command::Pause(args) => change::post(&args, "pause", b""),
        Command::Resume(args) => change::post(&args, "resume", b""),
        Command::Retry(args) => change::retry(&args),
        Command::Delete(args) => change::delete(&args),
        Command::List(args) => list::run(&args),
        Command::Pipeline(command) => pipelines::run(&command),
        Command::Import(command) => import::run(&command, &Environment::of_process()),
        Command::Cluster(command) => clusters::run(&command),
        Command::Usage(args) => usage::run(&args),
        Command::Preflight(args) => clusters::preflight(&args),
        Command::Ready(args) => service::ready(&args),
        Command::Completions(args) => shell::completions(&args),
        Command::Man => shell::man(),
    }
}

/// Runs the service. The traces of its shutdown are still exported.
fn serving(overrides: &Overrides, role: Role) -> anyhow::Result<ExitCode> {
    let environment = Environment::of_process();
    let config = config::load(overrides, &environment)?;
    let exporter = telemetry::start_traces(&config, role.into())?;
    telemetry::start_logs(&config.settings.log, exporter.as_ref())?;
    let ended = on_runtime(serve::run(config, environment, role));
    exporter.iter().for_each(Exporter::finish);
    ended
}

/// Runs a command that uses the service's configuration and logs.
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
    // Dropping the runtime would wait for blocking threads, which may hang on the network.
    runtime.shutdown_background();
    ended
}
