//! What one look at the cluster costs, with few and with many jobs, of which none, few or all have changed. The jobs are real:
//! they wait in a partition that is down. That one has changed is brought about on our side, by writing down something else of
//! it than the cluster says: for the service the two are the same.

use std::{
    fmt::Write,
    fs,
    io::Write as _,
    thread,
    time::{Duration, Instant},
};

use anyhow::{Context, ensure};
use serde_json::{Value, json};

use crate::{
    Bench,
    row::{Row, each},
    sandbox::{ROOM, Ssh},
    service::{Plan, Service},
    stats::{count, median, millis, number},
    stock,
};

/// Long enough for a poll of ten thousand jobs, short enough to see many.
const INTERVAL: Duration = Duration::from_secs(5);
const SHARES: [u64; 3] = [0, 1, 100];
/// So many callers hand in jobs at a time.
const CALLERS: usize = 8;

/// What one poll has cost.
#[derive(Debug, Default)]
struct Cost {
    cpu: Vec<f64>,
    database: Vec<f64>,
    commands: Vec<f64>,
    bytes: Vec<f64>,
    wall: Vec<f64>,
}

pub(crate) fn run(bench: &Bench, rows: &mut Vec<Row>) -> anyhow::Result<()> {
    let plan = Plan {
        settings: format!("[worker]\npoll_min = \"{0}s\"\npoll_max = \"{0}s\"\n", INTERVAL.as_secs()),
        ..Plan::default()
    };
    let sizes = [10, bench.size(1000, 20), bench.size(10_000, 40)];
    // Before the service starts, which asks for the cluster's partitions then.
    let closed = bench.sandbox.close(ROOM)?;
    let mut service = Service::start(bench, &plan)?;
    let template = stock::template(bench, &service)?;
    stock::fill(&mut service, &template, 0, bench.size(90_000, 100) as u64)?;
    let (mut few_commands, mut unchanged) = (0.0, Vec::new());
    for size in sizes {
        grow(bench, &service, size)?;
        for share in SHARES {
            bench.say(&format!("{size} jobs, {share} % of them changed"));
            let cost = polls(bench, &service, Some(share))?;
            let what = format!("{size} active jobs, {share} % changed");
            if size == sizes[0] && share == 0 {
                few_commands = median(&cost.commands);
            }
            let cpu = Row::of(format!("processor for a poll: {what}"), "ms", &cost.cpu).note(format!(
                "database {:.0} ms, answer {:.0} kB, remote command {:.0} ms",
                median(&cost.database),
                median(&cost.bytes) / 1e3,
                median(&cost.wall)
            ));
            rows.push(if size == sizes[2] { cpu.at_most(1000.0) } else { cpu });
            if share == 0 {
                rows.push(
                    Row::of(format!("remote commands for a poll: {size} active jobs"), "", &cost.commands)
                        .at_most(few_commands),
                );
                unchanged.push(median(&cost.cpu));
            }
        }
    }
    rows.push(
        Row::new("processor for a poll of 10 times as many unchanged jobs", "×", unchanged[2] / unchanged[1])
            .at_most(10.0)
            .note(format!("{} against {} jobs", sizes[2], sizes[1])),
    );
    rows.push(
        Row::new("resident memory with all of them", "MB", number(service.usage()?.memory) / 1e6)
            .at_most(100.0)
            .note(format!("{} active, {} that have ended", sizes[2], bench.size(90_000, 100))),
    );
    // Ten thousand cancellations would take longer than all of the above: who goes on knows nothing of them.
    drop(service);
    bench.sandbox.clear()?;
    drop(closed);
    running(bench, &Service::start(bench, &plan)?, rows)
}

/// As many polls as rounds. Before each, so many percent of the jobs are made to look changed.
fn polls(bench: &Bench, service: &Service<'_>, changed: Option<u64>) -> anyhow::Result<Cost> {
    let mut cost = Cost::default();
    let mut last = next_poll(service, None)?;
    for _ in 0..bench.rounds() {
        if let Some(share @ 1..) = changed {
            service.sql(&format!(
                "update jobs set message = 'as it was before', pending_reason = 'None', version = version + 1 \
                 where phase = 'in_queue' and get_byte(uuid_send(id), 15) * 100 < 256 * {share}"
            ))?;
        }
        let before = Before::take(bench, service)?;
        last = next_poll(service, Some(&last))?;
        before.add_to(&mut cost, bench, service)?;
    }
    Ok(cost)
}

struct Before {
    cpu: Duration,
    database: Duration,
    ssh: Ssh,
}

impl Before {
    fn take(bench: &Bench, service: &Service<'_>) -> anyhow::Result<Self> {
        Ok(Self { cpu: service.usage()?.cpu, database: service.database_time()?, ssh: bench.sandbox.ssh()? })
    }

    fn add_to(self, cost: &mut Cost, bench: &Bench, service: &Service<'_>) -> anyhow::Result<()> {
        // What comes with a poll has come by then: what it changed is told to nobody here.
        thread::sleep(Duration::from_secs(1));
        cost.cpu.push(millis(service.usage()?.cpu.saturating_sub(self.cpu)));
        cost.commands.push(number(bench.sandbox.ssh()?.since(self.ssh).commands));
        cost.database.push(millis(service.database_time()?.saturating_sub(self.database)));
        let said = service
            .sql("select bytes, duration_ms from timeline where class = 'poll' order by id desc limit 1")?;
        let (bytes, wall) = said.split_once('|').context("a poll in the timeline")?;
        cost.bytes.push(bytes.parse()?);
        cost.wall.push(wall.parse()?);
        Ok(())
    }
}

/// Waits until a poll was answered after the one that is known; returns when that was, as the database has it.
fn next_poll(service: &Service<'_>, known: Option<&str>) -> anyhow::Result<String> {
    let began = Instant::now();
    if known.is_some() {
        // Most of the wait, without asking.
        thread::sleep(INTERVAL.mul_f64(0.5));
    }
    let mut first = known.map(str::to_owned);
    loop {
        let at = service.sql("select polled_at from cluster_polls")?;
        match &first {
            None => first = Some(at),
            Some(known) if *known != at => return Ok(at),
            Some(_) => {}
        }
        ensure!(began.elapsed() < Duration::from_mins(2), "the cluster is not polled");
        thread::sleep(Duration::from_millis(50));
    }
}

/// Hands in jobs until so many wait on the cluster.
fn grow(bench: &Bench, service: &Service<'_>, size: usize) -> anyhow::Result<()> {
    let have = usize::try_from(service.active()?)?;
    bench.say(&format!("from {have} to {size} active jobs"));
    thread::scope(|scope| {
        let post = |caller| -> anyhow::Result<()> {
            (have + caller..size).step_by(CALLERS).try_for_each(|_| {
                service.http.submit(&job("true", json!(ROOM)))?;
                Ok(())
            })
        };
        let callers: Vec<_> = (0..CALLERS).map(|caller| scope.spawn(move || post(caller))).collect();
        callers
            .into_iter()
            .try_for_each(|caller| caller.join().map_err(|_| anyhow::anyhow!("a caller panicked"))?)
    })?;
    until(service, "in_queue", size)
}

fn until(service: &Service<'_>, phase: &str, size: usize) -> anyhow::Result<()> {
    let began = Instant::now();
    loop {
        let there = service.sql(&format!("select count(*) from jobs where phase = '{phase}'"))?;
        if there.parse::<usize>()? >= size {
            return Ok(());
        }
        ensure!(began.elapsed() < Duration::from_mins(10), "{there} of {size} jobs are {phase}");
        thread::sleep(Duration::from_millis(500));
    }
}

/// Jobs that run, and all write into their status files.
fn running(bench: &Bench, service: &Service<'_>, rows: &mut Vec<Row>) -> anyhow::Result<()> {
    // Each is several processes, which Slurm's daemons look through: of three hundred, two cores do nothing else.
    let jobs = bench.size(100, 3);
    bench.say(&format!("{jobs} running jobs"));
    for _ in 0..jobs {
        service.http.submit(&job("sleep 900", Value::Null))?;
    }
    until(service, "running", jobs)?;
    let base = bench.sandbox.var("SLURM_BASE_RESULTS_DIR")?.to_owned();
    let ids = service.sql("select id from jobs where phase = 'running'")?;
    let mut cost = Cost::default();
    let mut last = next_poll(service, None)?;
    let mut lines = 0;
    for round in 0..bench.rounds() {
        for id in ids.lines() {
            lines = write_status(&bench.sandbox.seen(&format!("{base}/results/{id}/status.json")), round)?;
        }
        let before = Before::take(bench, service)?;
        last = next_poll(service, Some(&last))?;
        before.add_to(&mut cost, bench, service)?;
    }
    rows.push(
        Row::of(
            format!("processor for a poll: {jobs} running jobs, each with {lines} new status lines"),
            "ms",
            &cost.cpu,
        )
        .note(format!(
            "{:.2} ms a job; database {:.0} ms, answer {:.0} kB, remote command {:.0} ms",
            each(median(&cost.cpu), jobs),
            median(&cost.database),
            median(&cost.bytes) / 1e3,
            median(&cost.wall)
        )),
    );
    rows.push(Row::of(format!("remote commands for a poll: {jobs} running jobs"), "", &cost.commands));
    service.cancel_all()
}

/// Ten more lines, as a training writes them.
fn write_status(file: &std::path::Path, round: usize) -> anyhow::Result<usize> {
    const LINES: usize = 10;
    let mut text = String::new();
    for line in 0..LINES {
        let epoch = round * LINES + line;
        // Writing to a String does not fail.
        let _ = writeln!(
            text,
            r#"{{"date": "11/22/2026", "time": "10:00:00", "status": "RUNNING", "verbosity": "INFO", "epoch": {epoch}, "max_epoch": 1000, "time_per_epoch": "0:00:01", "eta": "0:10:00", "kpi": {{"loss": {:.4}}}}}"#,
            1.0 / (count(epoch) + 1.0)
        );
    }
    if let Some(directory) = file.parent() {
        fs::create_dir_all(directory)?;
    }
    let mut file = fs::OpenOptions::new().create(true).append(true).open(file)?;
    file.write_all(text.as_bytes())?;
    Ok(LINES)
}

fn job(command: &str, partition: Value) -> Value {
    let mut job = json!({
        "command": command, "resources": {"num_gpus": 0, "cpus_per_task": 1, "time_hours": 0.5},
        "backend_details": {"backend_type": "slurm"},
    });
    if !partition.is_null() {
        job["backend_details"]["partition"] = partition;
    }
    job
}
