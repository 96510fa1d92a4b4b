//! Submit latency on an idle service, one job at a time: from the POST to the Slurm id at a watcher. Interleaved with a bare
//! `sbatch` over SSH. The jobs stay pending and are canceled; `status-latency` measures starts and ends.

use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use anyhow::Context;
use chrono::{DateTime, Utc};
use serde_json::{Value, json};

use crate::{
    Bench,
    row::Row,
    sandbox::{BENCH_PARTITION, Session},
    service::{Plan, Service},
    stats::{millis, percentile},
    watch::Watch,
};

const SCRIPT: &str = "/home/tao/bare.sbatch";
const TIMEOUT: Duration = Duration::from_mins(3);
/// The goal for the service's overhead over the bare command.
const OVER_BARE_MS: f64 = 100.0;

/// Milliseconds, by job.
#[derive(Debug, Default)]
struct Times {
    bare: Vec<f64>,
    bare_with_login: Vec<f64>,
    accepted: Vec<f64>,
    id_known: Vec<f64>,
    spans: Spans,
}

/// The parts of the time to the Slurm id, from the job's timeline.
#[derive(Debug, Default)]
struct Spans {
    to_command: Vec<f64>,
    command: Vec<f64>,
    to_watcher: Vec<f64>,
}

pub(crate) fn run(bench: &Bench, rows: &mut Vec<Row>) -> anyhow::Result<()> {
    let jobs = bench.size(100, 3);
    bench.sandbox.login(&format!("printf '#!/bin/sh\\ntrue\\n' >{SCRIPT}"))?;
    // Before the service starts, because it reads the cluster's partitions then.
    let _closed = bench.sandbox.close(BENCH_PARTITION)?;
    // Frequent polls, so that each job has ended before the next one starts.
    let settings = "[worker]\npoll_min = \"1s\"\n".to_owned();
    let service = Service::start(bench, &Plan { settings, ..Plan::default() })?;
    let watch = Watch::open(&service.http, "/events?kind=transition")?;
    let session = bench.sandbox.session()?;
    // The first job opens the service's connections and does not count.
    one(&service, &watch, &mut Times::default())?;
    let mut times = Times::default();
    for number in 1..=jobs {
        if number % 25 == 1 {
            bench.say(&format!("job {number} of {jobs}"));
        }
        bare(bench, &session, &mut times)?;
        one(&service, &watch, &mut times)?;
    }
    push(&times, rows);
    Ok(())
}

fn push(times: &Times, rows: &mut Vec<Row>) {
    let bare = "`sbatch` over an open SSH connection";
    for (name, percent) in [("p50", 50.0), ("p95", 95.0)] {
        let of = |samples: &[f64]| percentile(samples, percent);
        let over = of(&times.id_known) - of(&times.bare);
        rows.push(
            Row::of(format!("POST to Slurm id at a watcher, {name}"), "ms", &times.id_known)
                .value(of(&times.id_known))
                .ratio(bare, of(&times.bare) / of(&times.id_known))
                .note("with a poll every second"),
        );
        rows.push(Row::new(format!("overhead over bare `sbatch`, {name}"), "ms", over).at_most(OVER_BARE_MS));
        let simple = [
            ("part: POST to the remote command", &times.spans.to_command),
            ("part: the remote command (stages files, runs `sbatch`)", &times.spans.command),
            ("part: answer of the command to the watcher", &times.spans.to_watcher),
            ("POST to 201", &times.accepted),
            (bare, &times.bare),
            ("`sbatch` over a new SSH connection", &times.bare_with_login),
        ];
        for (figure, samples) in simple {
            rows.push(Row::of(format!("{figure}, {name}"), "ms", samples).value(of(samples)));
        }
    }
}

/// Submits held jobs and cancels them, so that they do not disturb the next measurement.
fn bare(bench: &Bench, session: &Session, times: &mut Times) -> anyhow::Result<()> {
    let text = format!("sbatch --parsable --hold -o /dev/null {SCRIPT}");
    let began = Instant::now();
    let first = session.run(&text)?;
    times.bare.push(millis(began.elapsed()));
    let began = Instant::now();
    let second = bench.sandbox.login(&text)?;
    times.bare_with_login.push(millis(began.elapsed()));
    session.run(&format!("scancel {first} {second}"))?;
    Ok(())
}

/// Measures one job from its POST to its Slurm id, then cancels it and waits for its end.
fn one(service: &Service<'_>, watch: &Watch, times: &mut Times) -> anyhow::Result<()> {
    let job = json!({
        "command": "true", "resources": {"num_gpus": 0, "cpus_per_task": 1, "time_hours": 0.1},
        "backend_details": {"backend_type": "slurm", "partition": BENCH_PARTITION},
    });
    let (began, wall) = (Instant::now(), SystemTime::now().duration_since(UNIX_EPOCH)?);
    let id = service.http.submit(&job)?;
    times.accepted.push(millis(began.elapsed()));
    let queued = watch.until("a Slurm id", TIMEOUT, |event| {
        event.text("/job_id") == Some(&id) && event.text("/data/slurm_job_id").is_some()
    })?;
    let id_known = queued.at.duration_since(began);
    times.id_known.push(millis(id_known));
    service.http.post(&format!("/jobs/{id}/cancel"), &Value::Null)?.ok()?;
    watch.until("the end of a canceled job", TIMEOUT, |event| {
        event.text("/job_id") == Some(&id) && event.text("/data/status") == Some("Canceled")
    })?;
    // The timeline is written asynchronously, but it has the submission by now.
    let timeline = service.http.get(&format!("/jobs/{id}/timeline?class=submit"))?.ok()?;
    times.spans.push(&timeline, wall, id_known)
}

impl Spans {
    /// Adds the times of the command that submitted the job. `posted` is a wall-clock time, `id_known` the time since then.
    fn push(&mut self, timeline: &Value, posted: Duration, id_known: Duration) -> anyhow::Result<()> {
        let command = timeline["entries"].as_array().and_then(|entries| entries.last());
        let command = command.context("the timeline has no submit command")?;
        let began: DateTime<Utc> =
            command["started_on"].as_str().context("a command without a start time")?.parse()?;
        let took = command["duration_ms"].as_f64().context("a command without a duration")?;
        let waited = (began - (DateTime::UNIX_EPOCH + posted)).as_seconds_f64() * 1000.0;
        self.to_command.push(waited);
        self.command.push(took);
        self.to_watcher.push(millis(id_known) - waited - took);
        Ok(())
    }
}
