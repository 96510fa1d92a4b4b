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
mod import;
mod process;
mod wiring;

use std::{
    io::{self, Write},
    process::ExitCode,
};

use clap::{Parser, error::ErrorKind};
use tikv_jemallocator::Jemalloc;

/// A poll of ten thousand jobs needs some megabytes for a moment, each time on another thread. glibc keeps the most that each of its
/// malloc arenas ever held; jemalloc returns free memory to the system within a second. `.cargo/config.toml` has its options.
#[global_allocator]
static ALLOCATOR: Jemalloc = Jemalloc;

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
            ExitCode::from(error.downcast_ref().map_or(1, client::ClientError::exit_code))
        }
    }
}

fn is_broken_pipe(error: &anyhow::Error) -> bool {
    error.downcast_ref::<io::Error>().is_some_and(|error| error.kind() == io::ErrorKind::BrokenPipe)
}

#[cfg(test)]
mod tests {
    use std::{
        fs,
        sync::{Arc, Barrier},
        thread,
        time::Duration,
    };

    fn resident_mib() -> u64 {
        let status = fs::read_to_string("/proc/self/status").unwrap();
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
        line.trim().trim_end_matches(" kB").parse::<u64>().unwrap() / 1024
    }

    /// It fails if the options of `.cargo/config.toml` did not reach jemalloc.
    #[test]
    fn memory_that_threads_have_freed_goes_back_to_the_system() {
        let before = resident_mib();
        let freed = Arc::new(Barrier::new(5));
        for _ in 0..4 {
            let freed = Arc::clone(&freed);
            thread::spawn(move || {
                drop((0..200_000).map(|i| format!("{i:>100}")).collect::<Vec<_>>());
                freed.wait();
                // The thread lives on, like those of the runtime.
                thread::park();
            });
        }
        freed.wait();
        let is_low = || {
            thread::park_timeout(Duration::from_millis(100));
            resident_mib() < before + 20
        };
        assert!((0..100).any(|_| is_low()), "{before} MiB before, {} MiB after", resident_mib());
    }
}
