//! One job at a time on an idle service: how long until a watcher knows its Slurm id. In turns with it, the bare `sbatch` over SSH.
//! The jobs stay in the queue and are canceled: how soon starts and ends are seen is the question of `observations`.

use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use anyhow::Context;
use chrono::{DateTime, Utc};
use serde_json::{Value, json};

use crate::{
    Bench,
    row::Row,
    sandbox::{ROOM, Session},
    service::{Plan, Service},
    stats::{millis, percentile},
    watch::Watch,
};

const SCRIPT: &str = "/home/tao/bare.sbatch";
const PATIENCE: Duration = Duration::from_mins(3);
/// What the service may take more than the bare command.
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

/// Where the time to the Slurm id goes, from its timeline.
#[derive(Debug, Default)]
struct Spans {
    to_command: Vec<f64>,
    command: Vec<f64>,
    to_watcher: Vec<f64>,
}

pub(crate) fn run(bench: &Bench, rows: &mut Vec<Row>) -> anyhow::Result<()> {
    let jobs = bench.size(100, 3);
    bench.sandbox.login(&format!("printf '#!/bin/sh\\ntrue\\n' >{SCRIPT}"))?;
    // Before the service starts, which asks for the cluster's partitions then.
    let _closed = bench.sandbox.close(ROOM)?;
    // Polls are frequent, so that each job is gone before the next one comes.
    let settings = "[worker]\npoll_min = \"1s\"\n".to_owned();
    let service = Service::start(bench, &Plan { settings, ..Plan::default() })?;
    let watch = Watch::open(&service.http, "/events?kind=transition")?;
    let session = bench.sandbox.session()?;
    // The first opens the service's connections, and counts for nothing.
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
    let bare = "`sbatch` over an SSH connection that is open";
    for (name, percent) in [("p50", 50.0), ("p95", 95.0)] {
        let of = |samples: &[f64]| percentile(samples, percent);
        let over = of(&times.id_known) - of(&times.bare);
        rows.push(
            Row::of(format!("POST to the Slurm id at a watcher, {name}"), "ms", &times.id_known)
                .value(of(&times.id_known))
                .ratio(bare, of(&times.bare) / of(&times.id_known))
                .note("the cluster is polled every second"),
        );
        rows.push(
            Row::new(format!("the same, over the bare `sbatch`, {name}"), "ms", over).at_most(OVER_BARE_MS),
        );
        let simple = [
            ("of that, POST to the remote command", &times.spans.to_command),
            ("of that, the command, which stages the files and runs `sbatch`", &times.spans.command),
            ("of that, from its answer to the watcher", &times.spans.to_watcher),
            ("POST to 201", &times.accepted),
            (bare, &times.bare),
            ("`sbatch` over an SSH connection of its own", &times.bare_with_login),
        ];
        for (figure, samples) in simple {
            rows.push(Row::of(format!("{figure}, {name}"), "ms", samples).value(of(samples)));
        }
    }
}

/// The job is held and taken away again, so that nothing of it runs beside what is measured next.
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

/// One job from its POST until it is in the queue, and then until it is seen canceled.
fn one(service: &Service<'_>, watch: &Watch, times: &mut Times) -> anyhow::Result<()> {
    let job = json!({
        "command": "true", "resources": {"num_gpus": 0, "cpus_per_task": 1, "time_hours": 0.1},
        "backend_details": {"backend_type": "slurm", "partition": ROOM},
    });
    let (began, wall) = (Instant::now(), SystemTime::now().duration_since(UNIX_EPOCH)?);
    let id = service.http.submit(&job)?;
    times.accepted.push(millis(began.elapsed()));
    let queued = watch.until("a Slurm id", PATIENCE, |event| {
        event.text("/job_id") == Some(&id) && event.text("/data/slurm_job_id").is_some()
    })?;
    let id_known = queued.at.duration_since(began);
    times.id_known.push(millis(id_known));
    service.http.post(&format!("/jobs/{id}/cancel"), &Value::Null)?.ok()?;
    watch.until("the end of a job that was canceled", PATIENCE, |event| {
        event.text("/job_id") == Some(&id) && event.text("/data/status") == Some("Canceled")
    })?;
    // The timeline is written beside the work: by now it has the submission.
    let timeline = service.http.get(&format!("/jobs/{id}/timeline?class=submit"))?.ok()?;
    times.spans.push(&timeline, wall, id_known)
}

impl Spans {
    /// Adds what the timeline says of the command that submitted the job; `posted` is by the clock of the wall, `id_known` since then.
    fn push(&mut self, timeline: &Value, posted: Duration, id_known: Duration) -> anyhow::Result<()> {
        let command = timeline["entries"].as_array().and_then(|entries| entries.last());
        let command = command.context("the timeline has no command that submitted it")?;
        let began: DateTime<Utc> =
            command["started_on"].as_str().context("a command without a beginning")?.parse()?;
        let took = command["duration_ms"].as_f64().context("a command without an end")?;
        let waited = (began - (DateTime::UNIX_EPOCH + posted)).as_seconds_f64() * 1000.0;
        self.to_command.push(waited);
        self.command.push(took);
        self.to_watcher.push(millis(id_known) - waited - took);
        Ok(())
    }
}
