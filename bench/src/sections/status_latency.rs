//! The time from a change on the cluster to the event at a watcher, with the default polling interval. The jobs run one after
//! another for a few seconds; each records when it started and ended.

use std::{
    fs,
    time::{Duration, Instant, SystemTime, UNIX_EPOCH},
};

use anyhow::{Context, bail};
use serde_json::json;

use crate::{
    Bench,
    row::Row,
    service::{Plan, Service},
    stats::{millis, percentile},
    watch::Watch,
};

/// Where the jobs record their start and end times.
const DIRECTORY: &str = "/home/tao/bench";
/// Longer than the default polling interval (5 s plus jitter), so that a poll sees each job running.
const SECONDS: u32 = 7;
const TIMEOUT: Duration = Duration::from_mins(3);

/// Milliseconds, by job.
#[derive(Debug, Default)]
struct Times {
    running: Vec<f64>,
    done: Vec<f64>,
    unseen: usize,
}

pub(crate) fn run(bench: &Bench, rows: &mut Vec<Row>) -> anyhow::Result<()> {
    let jobs = bench.size(100, 3);
    bench.sandbox.login(&format!("rm -rf {DIRECTORY}; mkdir -p {DIRECTORY}"))?;
    let service = Service::start(bench, &Plan::default())?;
    let watch = Watch::open(&service.http, "/events?kind=transition")?;
    let mut times = Times::default();
    let outcome = (1..=jobs).try_for_each(|number| {
        if number % 10 == 1 {
            bench.say(&format!("job {number} of {jobs}"));
        }
        one(bench, &service, &watch, number, &mut times)
    });
    // The section takes long, so a failure keeps what was measured before.
    if !times.done.is_empty() {
        push(&times, rows);
    }
    outcome
}

fn push(times: &Times, rows: &mut Vec<Row>) {
    let note =
        format!("jobs of {SECONDS} s; no event `Running` for {} of {}", times.unseen, times.done.len());
    for (name, percent) in [("p50", 50.0), ("p95", 95.0)] {
        for (figure, samples) in [
            ("job start to `Running` at a watcher", &times.running),
            ("job end to `Done` at a watcher", &times.done),
        ] {
            let row = Row::of(format!("{figure}, {name}"), "ms", samples);
            rows.push(row.value(percentile(samples, percent)).note(&note));
        }
    }
}

/// Measures one job, from its POST to the event `Done`.
fn one(
    bench: &Bench,
    service: &Service<'_>,
    watch: &Watch,
    number: usize,
    times: &mut Times,
) -> anyhow::Result<()> {
    let file = format!("{DIRECTORY}/{number}");
    let command = format!("date +%s%N >{file}; sleep {SECONDS}; date +%s%N >>{file}");
    let resources = json!({"num_gpus": 0, "cpus_per_task": 1, "time_hours": 0.1});
    let (began, wall) = (Instant::now(), SystemTime::now().duration_since(UNIX_EPOCH)?);
    let id = service.http.submit(&json!({"command": command, "resources": resources}))?;
    let mut running = None;
    let done = loop {
        let event = watch.next(TIMEOUT)?.with_context(|| format!("no event for job {id}"))?;
        if event.text("/job_id") != Some(&id) {
            continue;
        }
        let at = event.at.duration_since(began);
        match event.text("/data/status") {
            Some("Running") => drop(running.get_or_insert(at)),
            Some("Done") => break at,
            Some("Error" | "Canceled") => bail!("job {id} failed: {}", event.data),
            _ => {}
        }
    };
    // The job runs on this machine, so its times and ours come from the same clock.
    let written = fs::read_to_string(bench.sandbox.local(&file))?;
    let mut moments = written.lines().map(|line| line.parse().map(Duration::from_nanos));
    let real_start = moments.next().context("the job did not record its start")??;
    let real_end = moments.next().context("the job did not record its end")??;
    match running {
        Some(running) => times.running.push(millis((wall + running).saturating_sub(real_start))),
        None => times.unseen += 1,
    }
    times.done.push(millis((wall + done).saturating_sub(real_end)));
    Ok(())
}
