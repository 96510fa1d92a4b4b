//! Dashboards: requests for status and lists by one client and by many, and many event streams.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use anyhow::ensure;
use serde_json::{Value, json};

use crate::{
    Bench,
    load::{self, Make, Pace},
    row::{Row, each},
    sandbox::BENCH_PARTITION,
    sections::size,
    service::{Plan, Service},
    stats::{count, grouped, median, millis, percentile},
    stock,
    watch::Watch,
};

const CLIENTS: [usize; 3] = [1, 32, 256];
/// The number of jobs whose status is requested in turn.
const REQUESTED_JOBS: u64 = 1000;

pub(crate) fn run(bench: &Bench, rows: &mut Vec<Row>) -> anyhow::Result<()> {
    // Before the service starts, because it reads the cluster's partitions then.
    let _closed = bench.sandbox.close(BENCH_PARTITION)?;
    let mut service = Service::start(bench, &Plan::default())?;
    let stored = bench.size(100_000, 2000) as u64;
    let template = stock::template(bench, &service)?;
    stock::fill(&mut service, &template, 0, stored)?;
    rows.push(size::start(bench, &mut service, stored)?);
    let etag = service.http.get(&format!("/jobs/{}/status", stock::id(0)))?.etag.unwrap_or_default();
    ensure!(!etag.is_empty(), "the status has no ETag");
    let status = |number: u64| format!("/jobs/{}/status", stock::id(number % REQUESTED_JOBS));
    let http = service.http.clone();
    let plain: Make = Arc::new(move |number| load::request(&http, "GET", &status(number), &[], ""));
    let http = service.http.clone();
    // All jobs are copies of one job, so they have the same version.
    let known: Make =
        Arc::new(move |number| load::request(&http, "GET", &status(number), &[("if-none-match", &etag)], ""));
    let http = service.http.clone();
    let list: Make = Arc::new(move |_| load::request(&http, "GET", "/jobs", &[], ""));
    let kinds = [
        ("`GET /jobs/{id}/status`", plain.clone(), 200),
        ("`GET /jobs/{id}/status`, unchanged (`If-None-Match`)", known, 304),
        ("`GET /jobs`, newest 50", list, 200),
    ];
    for (what, make, answer) in &kinds {
        for clients in CLIENTS {
            rows.extend(crowd(bench, &service, what, make, *answer, clients)?);
        }
    }
    rows.push(steady(bench, &service, &plain)?);
    rows.push(Row::new(
        "resident memory after this load",
        "MB",
        crate::stats::number(service.usage()?.memory) / 1e6,
    ));
    watchers(bench, &service, rows)
}

/// Measures a number of clients; each client sends its next request after the last answer.
fn crowd(
    bench: &Bench,
    service: &Service<'_>,
    what: &str,
    make: &Make,
    answer: u16,
    clients: usize,
) -> anyhow::Result<[Row; 2]> {
    let lasting = Duration::from_millis(bench.size(2000, 300) as u64);
    let (mut rates, mut slow, mut cpu) = (Vec::new(), Vec::new(), Vec::new());
    let (mut half, mut refused) = (Vec::new(), 0);
    for _ in 0..bench.rounds() {
        let before = service.usage()?;
        // 503 is valid: the answer of an overloaded service.
        let outcome =
            load::run(&service.http, clients, Pace::Closed, lasting, make)?.expect(&[answer, 503])?;
        refused += outcome.statuses.get(&503).copied().unwrap_or(0);
        let used = service.usage()?.since(before).cpu;
        rates.push(outcome.per_second());
        half.push(outcome.percentile(50.0));
        slow.push(outcome.percentile(99.0));
        cpu.push(each(used.as_secs_f64() * 1e6, outcome.millis.len()));
    }
    let plural = if clients == 1 { "client" } else { "clients" };
    let rate = Row::of(format!("{what}, {clients} {plural}"), "1/s", &rates).note(format!(
        "{:.0} µs of service CPU per request; the load generator shares the cores{}",
        median(&cpu),
        if refused > 0 { format!("; {refused} responses with 503") } else { String::new() }
    ));
    let goal = what == "`GET /jobs/{id}/status`" && clients > 1;
    let time = Row::of(format!("{what}, {clients} {plural}: p99"), "ms", &slow)
        .note(format!("p50 {:.2} ms", median(&half)));
    Ok([if goal { rate.at_least(10_000.0) } else { rate }, time])
}

/// Measures a thousand requests per second, sent at fixed times.
fn steady(bench: &Bench, service: &Service<'_>, make: &Make) -> anyhow::Result<Row> {
    let lasting = Duration::from_millis(bench.size(5000, 500) as u64);
    let mut slow = Vec::new();
    for _ in 0..bench.rounds() {
        let outcome = load::run(&service.http, 32, Pace::Open(1000.0), lasting, make)?.expect(&[200])?;
        slow.push(outcome.percentile(99.0));
    }
    Ok(Row::of("`GET /jobs/{id}/status` at 1,000/s: p99", "ms", &slow).at_most(10.0))
}

/// Submits jobs while many watchers follow all events: when each watcher gets each event, and what that costs.
fn watchers(bench: &Bench, service: &Service<'_>, rows: &mut Vec<Row>) -> anyhow::Result<()> {
    let (watching, jobs) = (bench.size(1000, 20), bench.size(20, 3));
    let streams = (0..watching).map(|_| Watch::open(&service.http, "/events?kind=transition"));
    let streams = streams.collect::<anyhow::Result<Vec<_>>>()?;
    let (before, ssh) = (service.usage()?, bench.sandbox.ssh()?);
    let mut spread = Vec::new();
    for _ in 0..jobs {
        let id = service.http.submit(&job())?;
        let arrivals = streams.iter().map(|stream| {
            let event = stream.until("a Slurm id", Duration::from_mins(1), |event| {
                event.text("/job_id") == Some(&id) && event.text("/data/slurm_job_id").is_some()
            })?;
            Ok(event.at)
        });
        let arrivals = arrivals.collect::<anyhow::Result<Vec<Instant>>>()?;
        let first = arrivals.iter().min().copied().unwrap_or_else(Instant::now);
        spread.push(arrivals.iter().map(|at| millis(at.duration_since(first))).fold(0.0, f64::max));
    }
    let used = service.usage()?.since(before).cpu;
    let commands = bench.sandbox.ssh()?.since(ssh).commands;
    rows.push(
        Row::of(format!("fan-out: first to last of {} watchers", grouped(watching)), "ms", &spread)
            .note(format!("p95 {:.1} ms over {jobs} events", percentile(&spread, 95.0))),
    );
    rows.push(
        Row::new(
            format!("CPU time per job from POST to Slurm id, {} watchers", grouped(watching)),
            "ms",
            each(used.as_secs_f64() * 1e3, jobs),
        )
        .note(format!(
            "{commands} remote commands meanwhile, {:.1} per job",
            each(count(usize::try_from(commands)?), jobs)
        )),
    );
    drop(streams);
    service.cancel_all()
}

fn job() -> Value {
    json!({
        "command": "true", "resources": {"num_gpus": 0, "cpus_per_task": 1, "time_hours": 0.1},
        "backend_details": {"backend_type": "slurm", "partition": BENCH_PARTITION},
    })
}
