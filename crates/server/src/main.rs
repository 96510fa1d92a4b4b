//! The `tao-slurm` program: configuration, wiring, lifecycle and the command line. No logic: what the service
//! does is in the other crates.
//!
//! To add a command: a file in `commands`, a variant in `cli`, and its line in `commands::run`.

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
            // Nothing can be done about a closed terminal.
            let _ = error.print();
            return match error.kind() {
                ErrorKind::DisplayHelp | ErrorKind::DisplayVersion => ExitCode::SUCCESS,
                _ => ExitCode::from(cli::EXIT_USAGE),
            };
        }
    };
    match commands::run(cli) {
        Ok(code) => code,
        // The reader of a pipe has had enough, as `head` has.
        Err(error) if is_broken_pipe(&error) => ExitCode::SUCCESS,
        Err(error) => {
            let _ = writeln!(io::stderr(), "tao-slurm: {error:#}");
            ExitCode::from(cli::exit_code_of(&error))
        }
    }
}

fn is_broken_pipe(error: &anyhow::Error) -> bool {
    error.downcast_ref::<io::Error>().is_some_and(|error| error.kind() == io::ErrorKind::BrokenPipe)
}
