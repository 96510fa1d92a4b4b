//! `make bench`: measures the shipped service on a real cluster from outside, and compares it with the alternatives.
//! Writes one table and one JSON file. A missed goal fails the run only with `--check`.

#![expect(clippy::print_stdout, clippy::print_stderr, reason = "this program prints its results")]
#![expect(
    clippy::disallowed_methods,
    reason = "this program is not part of the service; it uses the real clock and real sleep"
)]
#![expect(dead_code, reason = "some functions are for future sections")]

mod allocations;
mod browser;
mod http;
mod load;
mod machine;
mod polls;
mod process;
mod report;
mod row;
mod sandbox;
mod sections;
mod service;
mod shares;
mod stats;
mod stock;
mod watch;

use std::{fs, path::PathBuf, process::ExitCode, time::Instant};

use anyhow::{Context, ensure};
use clap::Parser;

use crate::{
    machine::Machine,
    report::{Measured, Report},
    sandbox::Sandbox,
    sections::{SECTIONS, Section},
};

/// Measures the service on the sandbox and writes one table and one JSON file.
#[derive(Debug, Parser)]
struct Options {
    /// Comma-separated sections to run. Default: all.
    #[arg(long, value_delimiter = ',')]
    only: Vec<String>,
    /// Use small sizes to try the program. The figures are meaningless.
    #[arg(long)]
    quick: bool,
    /// Rounds per comparison. Default: 5, or 2 with --quick.
    #[arg(long)]
    rounds: Option<usize>,
    /// The program to measure.
    #[arg(long, default_value = "target/release/tao-slurm")]
    program: PathBuf,
    /// Path of the table and the JSON file, without extension. Default: `target/bench/<time>`.
    #[arg(long)]
    out: Option<PathBuf>,
    /// Exit with status 1 if a goal is missed or a section fails.
    #[arg(long)]
    check: bool,
    /// List the sections and measure nothing.
    #[arg(long)]
    list: bool,
}

/// The context of every section.
#[derive(Debug)]
pub(crate) struct Bench {
    pub(crate) sandbox: Sandbox,
    pub(crate) program: PathBuf,
    /// The directory for files of this run: logs of the service and files of sections.
    pub(crate) out: PathBuf,
    quick: bool,
    rounds: usize,
    began: Instant,
}

impl Bench {
    /// The number of interleaved rounds.
    pub(crate) fn rounds(&self) -> usize {
        self.rounds
    }

    /// The full size, or the quick one with `--quick`.
    pub(crate) fn size(&self, full: usize, quick: usize) -> usize {
        if self.quick { quick } else { full }
    }

    pub(crate) fn say(&self, text: &str) {
        eprintln!("bench: {:7.1} s  {text}", self.began.elapsed().as_secs_f64());
    }

    fn measure(&self, section: &Section) -> Measured {
        self.say(&format!("{}: {}", section.name, section.title));
        let (began, mut rows) = (Instant::now(), Vec::new());
        let failure = (section.run)(self, &mut rows).err().map(|error| format!("{error:#}"));
        if let Some(failure) = &failure {
            self.say(&format!("{} failed: {failure}", section.name));
        }
        let seconds = began.elapsed().as_secs_f64();
        Measured { section: section.name, title: section.title, rows, failure, seconds }
    }
}

fn main() -> anyhow::Result<ExitCode> {
    let options = Options::parse();
    if options.list {
        for section in SECTIONS {
            println!("{:14} {}", section.name, section.title);
        }
        return Ok(ExitCode::SUCCESS);
    }
    let chosen = chosen(&options.only)?;
    let time = chrono::Utc::now();
    let name = options
        .out
        .unwrap_or_else(|| PathBuf::from(format!("target/bench/{}", time.format("%Y-%m-%dT%H-%M-%S"))));
    fs::create_dir_all(&name)?;
    let program = fs::canonicalize(&options.program).with_context(|| {
        format!("{} is missing; build it: cargo build --release -p tao-slurm", options.program.display())
    })?;
    let bench = Bench {
        sandbox: Sandbox::up()?,
        out: fs::canonicalize(&name)?,
        quick: options.quick,
        rounds: options.rounds.unwrap_or(if options.quick { 2 } else { 5 }),
        began: Instant::now(),
        program,
    };
    let mut report = Report {
        machine: Machine::describe(&bench.sandbox, &bench.program),
        began: time.format("%Y-%m-%d %H:%M UTC").to_string(),
        quick: bench.quick,
        rounds: bench.rounds,
        measured: Vec::new(),
    };
    for section in chosen {
        report.measured.push(bench.measure(section));
        report.write(&bench.out)?;
    }
    let [table, json] = report.write(&bench.out)?;
    println!("{}", report.markdown());
    bench.say(&format!("results: {} and {}", table.display(), json.display()));
    Ok(if options.check && !report.is_good() { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}

fn chosen(only: &[String]) -> anyhow::Result<Vec<&'static Section>> {
    let known = |name: &&String| SECTIONS.iter().all(|section| section.name != **name);
    if let Some(unknown) = only.iter().find(known) {
        let names: Vec<_> = SECTIONS.iter().map(|section| section.name).collect();
        anyhow::bail!("unknown section {unknown:?}; the sections are {}", names.join(", "));
    }
    let is_chosen = |section: &&Section| only.is_empty() || only.iter().any(|name| name == section.name);
    let chosen: Vec<_> = SECTIONS.iter().filter(is_chosen).collect();
    ensure!(!chosen.is_empty(), "no section to measure");
    Ok(chosen)
}
