//! `make bench`: the service as it is shipped, on a real cluster, measured from outside beside what one would use instead.
//! One table and one JSON; timings are shown, and fail nothing unless that is asked for.

#![expect(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a program for people: what it prints is what it is for"
)]
#![expect(
    clippy::disallowed_methods,
    reason = "it is no part of the service: it has the real clock and real sleep"
)]
#![expect(dead_code, reason = "what only sections use that are still to come")]

mod allocations;
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

/// Measures the service on the sandbox, and writes one table and one JSON.
#[derive(Debug, Parser)]
struct Options {
    /// Only these sections, parted by commas; all unless it is said.
    #[arg(long, value_delimiter = ',')]
    only: Vec<String>,
    /// Small sizes, to try the program; its figures say nothing.
    #[arg(long)]
    quick: bool,
    /// How often each comparison is made; 5 unless it is said, 2 with --quick.
    #[arg(long)]
    rounds: Option<usize>,
    /// The service that is measured.
    #[arg(long, default_value = "target/release/tao-slurm")]
    program: PathBuf,
    /// The table and the JSON, without their endings; `target/bench/<time>` unless it is said.
    #[arg(long)]
    out: Option<PathBuf>,
    /// Exit with 1 if a goal is missed or a section fails.
    #[arg(long)]
    check: bool,
    /// Say which sections there are, and measure nothing.
    #[arg(long)]
    list: bool,
}

/// What every section gets.
#[derive(Debug)]
pub(crate) struct Bench {
    pub(crate) sandbox: Sandbox,
    pub(crate) program: PathBuf,
    /// Files of this run: logs of the service, and whatever a section wants to keep.
    pub(crate) out: PathBuf,
    quick: bool,
    rounds: usize,
    began: Instant,
}

impl Bench {
    /// How often A and B take turns.
    pub(crate) fn rounds(&self) -> usize {
        self.rounds
    }

    /// A size in earnest, or the one for a trial.
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
            self.say(&format!("{} did not come to its end: {failure}", section.name));
        }
        let seconds = began.elapsed().as_secs_f64();
        Measured { section: section.name, title: section.title, rows, failure, seconds }
    }
}

fn main() -> anyhow::Result<ExitCode> {
    let options = Options::parse();
    if options.list {
        for section in SECTIONS {
            println!("{:12} {}", section.name, section.title);
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
        format!("{}: build it first: cargo build --release -p tao-slurm", options.program.display())
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
    bench.say(&format!("written to {} and {}", table.display(), json.display()));
    Ok(if options.check && !report.is_good() { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}

fn chosen(only: &[String]) -> anyhow::Result<Vec<&'static Section>> {
    let known = |name: &&String| SECTIONS.iter().all(|section| section.name != **name);
    if let Some(unknown) = only.iter().find(known) {
        let names: Vec<_> = SECTIONS.iter().map(|section| section.name).collect();
        anyhow::bail!("there is no section {unknown:?}; there are {}", names.join(", "));
    }
    let wanted = |section: &&Section| only.is_empty() || only.iter().any(|name| name == section.name);
    let chosen: Vec<_> = SECTIONS.iter().filter(wanted).collect();
    ensure!(!chosen.is_empty(), "there is nothing to measure");
    Ok(chosen)
}
