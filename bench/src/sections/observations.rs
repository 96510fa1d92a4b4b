//! How soon a watcher sees what has happened on the cluster, with the pace of polls as it is shipped: one job after another that
//! runs for some seconds and writes down when it began and ended.

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

/// Where the jobs write when they began and ended.
const PLACE: &str = "/home/tao/bench";
/// Longer than the time between two polls as they are shipped (5 s and a fifth): each job is seen running.
const SECONDS: u32 = 7;
const PATIENCE: Duration = Duration::from_mins(3);

/// Milliseconds, by job.
#[derive(Debug, Default)]
struct Times {
    running: Vec<f64>,
    done: Vec<f64>,
    unseen: usize,
}

pub(crate) fn run(bench: &Bench, rows: &mut Vec<Row>) -> anyhow::Result<()> {
    let jobs = bench.size(100, 3);
    bench.sandbox.login(&format!("rm -rf {PLACE}; mkdir -p {PLACE}"))?;
    let service = Service::start(bench, &Plan::default())?;
    let watch = Watch::open(&service.http, "/events?kind=transition")?;
    let mut times = Times::default();
    let outcome = (1..=jobs).try_for_each(|number| {
        if number % 10 == 1 {
            bench.say(&format!("job {number} of {jobs}"));
        }
        one(bench, &service, &watch, number, &mut times)
    });
    // It takes long: what was seen until a failure is shown, too.
    if !times.done.is_empty() {
        push(&times, rows);
    }
    outcome
}

fn push(times: &Times, rows: &mut Vec<Row>) {
    let note =
        format!("jobs of {SECONDS} s; {} of {} were never seen running", times.unseen, times.done.len());
    for (name, percent) in [("p50", 50.0), ("p95", 95.0)] {
        for (figure, samples) in [
            ("the job's real start, to Running at a watcher", &times.running),
            ("the job's real end, to Done at a watcher", &times.done),
        ] {
            let row = Row::of(format!("{figure}, {name}"), "ms", samples);
            rows.push(row.value(percentile(samples, percent)).note(&note));
        }
    }
}

/// One job from its POST until it is seen Done.
fn one(
    bench: &Bench,
    service: &Service<'_>,
    watch: &Watch,
    number: usize,
    times: &mut Times,
) -> anyhow::Result<()> {
    let file = format!("{PLACE}/{number}");
    let command = format!("date +%s%N >{file}; sleep {SECONDS}; date +%s%N >>{file}");
    let resources = json!({"num_gpus": 0, "cpus_per_task": 1, "time_hours": 0.1});
    let (began, wall) = (Instant::now(), SystemTime::now().duration_since(UNIX_EPOCH)?);
    let id = service.http.submit(&json!({"command": command, "resources": resources}))?;
    let mut running = None;
    let done = loop {
        let event = watch.next(PATIENCE)?.with_context(|| format!("nothing is heard of job {id}"))?;
        if event.text("/job_id") != Some(&id) {
            continue;
        }
        let at = event.at.duration_since(began);
        match event.text("/data/status") {
            Some("Running") => drop(running.get_or_insert(at)),
            Some("Done") => break at,
            Some("Error" | "Canceled") => bail!("job {id} went wrong: {}", event.data),
            _ => {}
        }
    };
    // One machine, one clock: what the job wrote down is compared with what was seen here.
    let written = fs::read_to_string(bench.sandbox.seen(&file))?;
    let mut moments = written.lines().map(|line| line.parse().map(Duration::from_nanos));
    let real_start = moments.next().context("the job has not written its start")??;
    let real_end = moments.next().context("the job has not written its end")??;
    match running {
        Some(running) => times.running.push(millis((wall + running).saturating_sub(real_start))),
        None => times.unseen += 1,
    }
    times.done.push(millis((wall + done).saturating_sub(real_end)));
    Ok(())
}
