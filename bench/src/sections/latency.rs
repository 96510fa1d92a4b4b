//! One job at a time on an idle service with the settings as they are shipped: how long until a watcher knows its Slurm id,
//! sees it run, and sees it done. In turns with it, the bare `sbatch` over SSH.

use std::{
    fs,
    time::{Duration, Instant, SystemTime, UNIX_EPOCH},
};

use anyhow::{Context, bail};
use chrono::{DateTime, Utc};
use serde_json::{Value, json};

use crate::{
    Bench,
    row::Row,
    sandbox::Session,
    service::{Plan, Service},
    stats::{millis, percentile},
    watch::Watch,
};

/// Where the jobs write when they began and ended.
const PLACE: &str = "/home/tao/bench";
/// Longer than the time between two polls as they are shipped (5 s and a fifth): each job is seen running.
const SECONDS: u32 = 7;
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
    running_seen: Vec<f64>,
    done_seen: Vec<f64>,
    unseen: usize,
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
    bench.sandbox.login(&format!(
        "rm -rf {PLACE}; mkdir -p {PLACE}; printf '#!/bin/sh\\ntrue\\n' >{PLACE}/bare.sbatch"
    ))?;
    let service = Service::start(bench, &Plan::default())?;
    let watch = Watch::open(&service.http, "/events?kind=transition")?;
    let session = bench.sandbox.session()?;
    // The first opens the service's connections, and counts for nothing.
    one(bench, &service, &watch, "warm-up", &mut Times::default())?;
    let mut times = Times::default();
    let outcome = (1..=jobs).try_for_each(|number| {
        if number % 10 == 1 {
            bench.say(&format!("job {number} of {jobs}"));
        }
        bare(bench, &session, &mut times)?;
        one(bench, &service, &watch, &number.to_string(), &mut times)
    });
    // It takes long: what was seen until a failure is shown, too.
    if !times.done_seen.is_empty() {
        push(&times, rows);
    }
    outcome
}

fn push(times: &Times, rows: &mut Vec<Row>) {
    let bare = "`sbatch` over an SSH connection that is open";
    for (name, percent) in [("p50", 50.0), ("p95", 95.0)] {
        let of = |samples: &[f64]| percentile(samples, percent);
        let over = of(&times.id_known) - of(&times.bare);
        rows.push(
            Row::of(format!("POST to the Slurm id at a watcher, {name}"), "ms", &times.id_known)
                .value(of(&times.id_known))
                .ratio(bare, of(&times.bare) / of(&times.id_known)),
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
            ("the job runs, to Running at a watcher", &times.running_seen),
            ("the job's real end, to Done at a watcher", &times.done_seen),
        ];
        for (figure, samples) in simple {
            rows.push(Row::of(format!("{figure}, {name}"), "ms", samples).value(of(samples)));
        }
    }
    if let Some(row) = rows.first_mut() {
        *row = row.clone().note(format!(
            "jobs of {SECONDS} s with the pace of polls as it is shipped; {} of {} were never seen running",
            times.unseen,
            times.done_seen.len()
        ));
    }
}

/// The job is held and taken away again, so that nothing of it runs beside what is measured next.
fn bare(bench: &Bench, session: &Session, times: &mut Times) -> anyhow::Result<()> {
    let text = format!("sbatch --parsable --hold -o /dev/null {PLACE}/bare.sbatch");
    let began = Instant::now();
    let first = session.run(&text)?;
    times.bare.push(millis(began.elapsed()));
    let began = Instant::now();
    let second = bench.sandbox.login(&text)?;
    times.bare_with_login.push(millis(began.elapsed()));
    session.run(&format!("scancel {first} {second}"))?;
    Ok(())
}

/// One job from its POST until it is seen Done.
fn one(
    bench: &Bench,
    service: &Service<'_>,
    watch: &Watch,
    name: &str,
    times: &mut Times,
) -> anyhow::Result<()> {
    let file = format!("{PLACE}/{name}");
    let command = format!("date +%s%N >{file}; sleep {SECONDS}; date +%s%N >>{file}");
    let resources = json!({"num_gpus": 0, "cpus_per_task": 1, "time_hours": 0.1});
    let (began, wall) = (Instant::now(), SystemTime::now().duration_since(UNIX_EPOCH)?);
    let id = service.http.submit(&json!({"command": command, "resources": resources}))?;
    times.accepted.push(millis(began.elapsed()));
    let (mut id_known, mut running) = (None, None);
    let done = loop {
        let event = watch.next(PATIENCE)?.with_context(|| format!("nothing is heard of job {id}"))?;
        if event.text("/job_id") != Some(&id) {
            continue;
        }
        let at = event.at.duration_since(began);
        if event.text("/data/slurm_job_id").is_some() {
            id_known.get_or_insert(at);
        }
        match event.text("/data/status") {
            Some("Running") => drop(running.get_or_insert(at)),
            Some("Done") => break at,
            Some("Error" | "Canceled") => bail!("job {id} went wrong: {}", event.data),
            _ => {}
        }
    };
    let id_known = id_known.context("it was done without a Slurm id")?;
    times.id_known.push(millis(id_known));
    times.spans.push(
        &service.http.get(&format!("/jobs/{id}/timeline?class=submit"))?.ok()?,
        wall,
        id_known,
    )?;
    // One machine, one clock: what the job wrote down is compared with what was seen here.
    let written = fs::read_to_string(bench.sandbox.seen(&file))?;
    let mut moments = written.lines().map(|line| line.parse().map(Duration::from_nanos));
    let real_start = moments.next().context("the job has not written its start")??;
    let real_end = moments.next().context("the job has not written its end")??;
    match running {
        Some(running) => times.running_seen.push(millis((wall + running).saturating_sub(real_start))),
        None => times.unseen += 1,
    }
    times.done_seen.push(millis((wall + done).saturating_sub(real_end)));
    Ok(())
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
