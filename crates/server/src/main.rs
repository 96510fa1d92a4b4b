//! The `tao-slurm` program: configuration, wiring, lifecycle and the command line. The logic of the service is in the
//! other crates.
//!
//! To add a command, add a variant to `cli::Command`, a function in `commands` and its line in `commands::run`.

mod cli;
mod client;
mod clusters;
mod commands;
mod config;
mod database;
mod few_heaps;
mod process;
mod wiring;

use std::{
    io::{self, Write},
    process::ExitCode,
};

use clap::{Parser, error::ErrorKind};

fn main() -> ExitCode {
    let cli = match cli::Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) => {
            // An error here means that the terminal is closed.
            let _ = error.print();
            return match error.kind() {
                ErrorKind::DisplayHelp | ErrorKind::DisplayVersion => ExitCode::SUCCESS,
                _ => ExitCode::from(cli::EXIT_USAGE),
            };
        }
    };
    match commands::run(cli) {
        Ok(code) => code,
        // The reader of the pipe has closed it, such as `head`.
        Err(error) if is_broken_pipe(&error) => ExitCode::SUCCESS,
        Err(error) => {
            let _ = writeln!(io::stderr(), "tao-slurm: {error:#}");
            let request_failed = error.is::<client::ClientError>();
            ExitCode::from(if request_failed { cli::EXIT_REQUEST_FAILED } else { 1 })
        }
    }
}

fn is_broken_pipe(error: &anyhow::Error) -> bool {
    error.downcast_ref::<io::Error>().is_some_and(|error| error.kind() == io::ErrorKind::BrokenPipe)
}
