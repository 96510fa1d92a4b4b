//! Measures the cost of single polls: a service that polls at a fixed interval, its jobs, and its next polls.

use std::{
    thread,
    time::{Duration, Instant},
};

use anyhow::{Context, ensure};
use serde_json::json;

use crate::{
    Bench,
    row::Row,
    sandbox::{BENCH_PARTITION, Ssh},
    service::{Plan, Service},
    stats::{median, millis, number},
};

/// Long enough for a poll of ten thousand jobs, short enough to see many.
const INTERVAL: Duration = Duration::from_secs(3);
/// The number of callers that submit jobs at the same time.
const CALLERS: usize = 8;

/// A service that polls every [`INTERVAL`].
pub(crate) fn plan() -> Plan<'static> {
    Plan {
        settings: format!("[worker]\npoll_min = \"{0}s\"\npoll_max = \"{0}s\"\n", INTERVAL.as_secs()),
        ..Plan::default()
    }
}

/// Submits jobs until `size` of them are pending on the cluster, in the partition [`BENCH_PARTITION`].
pub(crate) fn grow(bench: &Bench, service: &Service<'_>, size: usize) -> anyhow::Result<()> {
    let have = usize::try_from(service.active()?)?;
    bench.say(&format!("from {have} to {size} active jobs"));
    let job = json!({
        "command": "true", "resources": {"num_gpus": 0, "cpus_per_task": 1, "time_hours": 0.5},
        "backend_details": {"backend_type": "slurm", "partition": BENCH_PARTITION},
    });
    thread::scope(|scope| {
        let post = |caller| -> anyhow::Result<()> {
            (have + caller..size).step_by(CALLERS).try_for_each(|_| {
                service.http.submit(&job)?;
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

/// Waits until `size` jobs are in a phase.
pub(crate) fn until(service: &Service<'_>, phase: &str, size: usize) -> anyhow::Result<()> {
    let began = Instant::now();
    loop {
        let found = service.sql(&format!("select count(*) from jobs where phase = '{phase}'"))?;
        if found.parse::<usize>()? >= size {
            return Ok(());
        }
        ensure!(began.elapsed() < Duration::from_mins(10), "{found} of {size} jobs are {phase}");
        thread::sleep(Duration::from_millis(500));
    }
}

/// The cost of each poll.
#[derive(Debug, Default)]
pub(crate) struct Cost {
    pub(crate) cpu: Vec<f64>,
    pub(crate) commands: Vec<f64>,
    database: Vec<f64>,
    bytes: Vec<f64>,
    wall: Vec<f64>,
}

impl Cost {
    /// A row with the CPU time of the service, and the other costs as a note.
    pub(crate) fn row(&self, what: &str) -> Row {
        Row::of(format!("CPU time per poll: {what}"), "ms", &self.cpu).note(format!(
            "database {:.0} ms, answer {:.0} kB, remote command {:.0} ms",
            median(&self.database),
            median(&self.bytes) / 1e3,
            median(&self.wall)
        ))
    }
}

/// Measures one poll per round. Calls `change` with the number of the round before each poll.
pub(crate) fn polls(
    bench: &Bench,
    service: &Service<'_>,
    mut change: impl FnMut(usize) -> anyhow::Result<()>,
) -> anyhow::Result<Cost> {
    let mut cost = Cost::default();
    let mut last = next_poll(service, None)?;
    for round in 0..bench.rounds() {
        change(round)?;
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
        // The work after a poll is done by then; nothing follows its events here.
        thread::sleep(Duration::from_secs(1));
        cost.cpu.push(millis(service.usage()?.cpu.saturating_sub(self.cpu)));
        cost.commands.push(number(bench.sandbox.ssh()?.since(self.ssh).commands));
        cost.database.push(millis(service.database_time()?.saturating_sub(self.database)));
        let row = service
            .sql("select bytes, duration_ms from timeline where class = 'poll' order by id desc limit 1")?;
        let (bytes, wall) = row.split_once('|').context("a poll in the timeline")?;
        cost.bytes.push(bytes.parse()?);
        cost.wall.push(wall.parse()?);
        Ok(())
    }
}

/// Waits for the next poll after `known`; returns its time as stored in the database.
fn next_poll(service: &Service<'_>, known: Option<&str>) -> anyhow::Result<String> {
    let began = Instant::now();
    if known.is_some() {
        // Wait for most of the interval without queries.
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
