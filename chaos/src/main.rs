//! `make chaos`: runs the service on a real cluster with a steady flow of jobs, and injects random faults everywhere.
//! At the end it turns all faults off, waits until the jobs finish, and audits each job from outside.

#![expect(clippy::print_stdout, clippy::print_stderr, reason = "this program prints its results")]
#![expect(
    clippy::disallowed_methods,
    reason = "this program is not part of the service; it uses the real clock and real sleep"
)]

mod audit;
mod callers;
mod evidence;
mod faults;
mod gpu_time;
mod injector;
mod jobs;
mod ledger;
mod repeat;
mod report;
mod sandbox;
mod service;
mod settle;
mod truth;

use std::{
    fs,
    path::PathBuf,
    process::ExitCode,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    thread,
    time::{Duration, Instant, SystemTime, UNIX_EPOCH},
};

use clap::Parser;

use crate::{ledger::Ledger, sandbox::Sandbox, service::Service};

/// Injects random faults into the service and the cluster while jobs run, then audits each job from outside.
#[derive(Debug, Parser)]
struct Options {
    /// How long to submit jobs and inject faults, in seconds.
    #[arg(long, default_value_t = 60)]
    duration: u64,
    /// The seed of all random choices. Durations still vary.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// The seconds after the last fault within which every job must finish.
    #[arg(long, default_value_t = 600)]
    settle: u64,
    /// The mean time between two submissions, in milliseconds.
    #[arg(long, default_value_t = 1500)]
    every: u64,
    /// Comma-separated faults to inject. Default: all.
    #[arg(long, value_delimiter = ',')]
    faults: Vec<String>,
    /// The program under test.
    #[arg(long, default_value = "target/debug/tao-slurm")]
    program: PathBuf,
    /// The directory for logs and reports. Default: `target/chaos/<seed>-<time>`.
    #[arg(long)]
    out: Option<PathBuf>,
    /// Print the report as JSON.
    #[arg(long)]
    json: bool,
    /// Print the report as a Markdown table, for docs/reliability.md.
    #[arg(long)]
    markdown: bool,
}

fn main() -> ExitCode {
    match run(&Options::parse()) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("chaos: {}", repeat::one_line(&error));
            ExitCode::from(2)
        }
    }
}

/// Whether the run was clean.
fn run(options: &Options) -> anyhow::Result<bool> {
    let catalogue = faults::chosen(&options.faults)?;
    let (began, commit) = (now(), report::commit());
    let out = options
        .out
        .clone()
        .unwrap_or_else(|| PathBuf::from(format!("target/chaos/{}-{:.0}", options.seed, began)));
    fs::create_dir_all(&out)?;
    let out = fs::canonicalize(out)?;
    say(began, &format!("seed {}, {} s; logs in {}", options.seed, options.duration, out.display()));

    let sandbox = Arc::new(Sandbox::up()?);
    let run = format!("{}-{:.0}", options.seed, began);
    sandbox.make_run_dir(&run)?;
    let service = Arc::new(Service::start(&sandbox, &options.program, &out)?);
    let ledger = Arc::new(Ledger::new(began));
    say(began, "the sandbox and the service are up; submitting jobs");

    let over = Arc::new(AtomicBool::new(false));
    let mut threads = Vec::new();
    for lane in 0..injector::LANES {
        let injector = injector::Injector {
            sandbox: Arc::clone(&sandbox),
            service: Arc::clone(&service),
            ledger: Arc::clone(&ledger),
            catalogue: catalogue.clone(),
            over: Arc::clone(&over),
        };
        let seed = options.seed.wrapping_mul(1000) + 1 + lane;
        threads.push(thread::spawn(move || injector.run(seed)));
    }
    let callers = callers::Callers {
        service: Arc::clone(&service),
        ledger: Arc::clone(&ledger),
        over: Arc::clone(&over),
        run: run.clone(),
        every: Duration::from_millis(options.every),
    };
    let owners = callers.clone();
    threads.push(thread::spawn(move || owners.act()));
    let seed = options.seed.wrapping_mul(1000);
    let submitter = thread::spawn(move || callers.submit(seed));
    let killer = injector::NodeKiller {
        sandbox: Arc::clone(&sandbox),
        ledger: Arc::clone(&ledger),
        over: Arc::clone(&over),
        run: run.clone(),
    };
    threads.push(thread::spawn(move || killer.watch()));
    let (operated, ended) = (Arc::clone(&sandbox), Arc::clone(&over));
    threads.push(thread::spawn(move || injector::operate(&operated, &ended)));

    let end = Instant::now() + Duration::from_secs(options.duration);
    while Instant::now() < end {
        thread::sleep(Duration::from_secs(5).min(end.saturating_duration_since(Instant::now())));
        say(began, &ledger.progress());
    }
    over.store(true, Ordering::Relaxed);
    for thread in threads {
        thread.join().map_err(|_| anyhow::anyhow!("a thread of this program panicked"))?;
    }
    // Join this thread last: it continues until its last job is accepted.
    service.restore();
    sandbox.restore()?;
    submitter.join().map_err(|_| anyhow::anyhow!("the submitting thread panicked"))?;
    say(began, "all faults are off; waiting for the jobs to finish");

    let settled =
        settle::wait(&service, &ledger, Duration::from_secs(options.settle), |text| say(began, text));
    let evidence = evidence::gather(&sandbox, &service, &ledger, &run)?;
    fs::write(out.join("evidence.json"), serde_json::to_string_pretty(&evidence.json())?)?;
    let slurm = sandbox.var("SANDBOX_SLURM")?;
    let mut report = report::Report::new(options.seed, options.duration, commit, slurm, settled, &ledger);
    report.audited = audit::audit(&evidence);
    report.gpu_time = gpu_time::compare(&sandbox, &service, &ledger, &evidence)?;
    report.panics = service.panics();
    service.stop();
    fs::write(out.join("report.json"), serde_json::to_string_pretty(&report.json())?)?;
    fs::write(out.join("report.md"), report.markdown())?;
    if options.json {
        println!("{}", serde_json::to_string_pretty(&report.json())?);
    } else if options.markdown {
        println!("{}", report.markdown());
    } else {
        println!("{}", report.table());
    }
    if report.is_clean() {
        sandbox.remove_run_dir(&run);
        return Ok(true);
    }
    eprintln!("chaos: the run is not clean; logs, evidence and this report are in {}", out.display());
    Ok(false)
}

/// Seconds since 1970.
fn now() -> f64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0.0, |time| time.as_secs_f64())
}

fn say(began: f64, text: &str) {
    eprintln!("chaos: {:6.1} s  {text}", now() - began);
}
