//! Sweeps: how fast a job with 10,000 tasks is in the queue, what a poll of it costs, and how soon the end of many tasks is known.
//! The baseline of the rate is a shell on the login node that runs `sbatch` once for each task.

use std::{
    fs,
    time::{Duration, Instant},
};

use anyhow::{Context, ensure};
use serde_json::{Value, json};

use crate::{
    Bench,
    polls::{plan, polls},
    row::Row,
    sandbox::BENCH_PARTITION,
    service::{Plan, Service},
    stats::{count, grouped, number},
    watch::Watch,
};

const TIMEOUT: Duration = Duration::from_mins(5);
/// What a shell submits one by one.
const SINGLES: usize = 100;
/// Slurm keeps canceled tasks for `MinJobAge`, and 50,000 jobs are the most that the sandbox takes.
const MOST_ROUNDS: usize = 3;

pub(crate) fn run(bench: &Bench, rows: &mut Vec<Row>) -> anyhow::Result<()> {
    submitting(bench, rows)?;
    canceled_in_slurm(bench, rows)?;
    ending(bench, rows)
}

fn sweep(tasks: usize, partition: &str, command: &str) -> Value {
    json!({
        "command": command,
        "array": {"matrix": {"seed": (0..tasks).collect::<Vec<_>>()}},
        "resources": {"num_gpus": 0, "cpus_per_task": 1, "time_hours": 0.1},
        "backend_details": {"backend_type": "slurm", "partition": partition},
    })
}

/// A sweep that stays pending.
fn submitting(bench: &Bench, rows: &mut Vec<Row>) -> anyhow::Result<()> {
    let tasks = bench.size(10_000, 50);
    // Before the service starts, because it reads the cluster's partitions then.
    let _closed = bench.sandbox.close(BENCH_PARTITION)?;
    let service = Service::start(bench, &plan())?;
    let watch = Watch::open(&service.http, "/events?kind=transition")?;
    let size =
        bench.sandbox.login("scontrol show config | sed -n 's/^MaxArraySize *= *//p'")?.parse::<usize>()?;
    let began = Instant::now();
    // Until then an array may only have as many tasks as every Slurm allows.
    while service.http.get("/clusters/sandbox/partitions")?.ok()?["max_array_size"] != size {
        ensure!(began.elapsed() < TIMEOUT, "the cluster has not told its MaxArraySize");
        std::thread::sleep(Duration::from_millis(200));
    }
    let rounds = bench.rounds().min(MOST_ROUNDS);
    let (mut rate, mut singles, mut sent) = (Vec::new(), Vec::new(), Vec::new());
    for round in 0..rounds {
        bench.say(&format!("round {} of {rounds}: {} tasks", round + 1, grouped(tasks)));
        let before = bench.sandbox.rpcs()?;
        let began = Instant::now();
        let id = service.http.submit(&sweep(tasks, BENCH_PARTITION, "true"))?;
        let last = in_queue(&service, &watch, &id, tasks.div_ceil(size))?;
        rate.push(count(tasks) / last.duration_since(began).as_secs_f64());
        let rpcs = bench.sandbox.rpcs()?.since(&before);
        sent.push(number(rpcs.by_type.get("REQUEST_SUBMIT_BATCH_JOB").copied().unwrap_or(0)));
        if round + 1 < rounds {
            service.cancel_all()?;
        }
        let loop_ = format!(
            "began=$(date +%s%N); for i in $(seq {SINGLES}); do sbatch -p {BENCH_PARTITION} --parsable --wrap true >/dev/null || exit 1; done; \
             echo $(($(date +%s%N) - began))"
        );
        let took = Duration::from_nanos(bench.sandbox.login(&loop_)?.parse()?);
        singles.push(count(SINGLES) / took.as_secs_f64());
        bench.sandbox.login(&format!("scancel --name=wrap --partition={BENCH_PARTITION}"))?;
    }
    let figure = format!("{} tasks: POST to the last Slurm id at a watcher", grouped(tasks));
    rows.push(Row::of(figure, "1/s", &rate).against("`sbatch` for each task", &singles).ratio_at_least(20.0));
    rows.push(
        Row::of(format!("submissions for {} tasks, by `sdiag`", grouped(tasks)), "", &sent)
            .at_most(count(tasks.div_ceil(size)))
            .note(format!("MaxArraySize {}", grouped(size))),
    );
    let cost = polls(bench, &service, |_| Ok(()))?;
    rows.push(cost.row(&format!("{} pending tasks", grouped(tasks))).at_most(50.0));
    Ok(())
}

/// Waits until all attempts of a job have a Slurm id. Returns when the last became known.
fn in_queue(service: &Service<'_>, watch: &Watch, id: &str, attempts: usize) -> anyhow::Result<Instant> {
    loop {
        let event = watch.until("a Slurm id of the sweep", TIMEOUT, |event| {
            event.text("/job_id") == Some(id) && event.text("/data/slurm_job_id").is_some()
        })?;
        let known = service.sql(&format!(
            "select count(*) from slurm_metadata where job_id = '{id}' and slurm_job_id is not null"
        ))?;
        if known.parse::<usize>()? >= attempts {
            return Ok(event.at);
        }
    }
}

/// Tasks that wait and end at the same time: an administrator cancels the array.
fn canceled_in_slurm(bench: &Bench, rows: &mut Vec<Row>) -> anyhow::Result<()> {
    let tasks = bench.size(1000, 20);
    let _closed = bench.sandbox.close(BENCH_PARTITION)?;
    let service = Service::start(bench, &Plan::default())?;
    let watch = Watch::open(&service.http, "/events?kind=transition")?;
    let mut seconds = Vec::new();
    for _ in 0..bench.rounds() {
        let id = service.http.submit(&sweep(tasks, BENCH_PARTITION, "true"))?;
        in_queue(&service, &watch, &id, 1)?;
        bench.sandbox.admin(&["scancel", &format!("--name=tao-job-{id}")])?;
        seconds.push(until_ended(&watch, &id, Instant::now())?);
    }
    rows.push(
        Row::of(
            format!("{} pending tasks end at once: until all ends are known", grouped(tasks)),
            "s",
            &seconds,
        )
        .at_most(10.0)
        .note("an administrator cancels the array"),
    );
    Ok(())
}

/// Tasks that run and end at the same time.
fn ending(bench: &Bench, rows: &mut Vec<Row>) -> anyhow::Result<()> {
    // More would keep the two cores of a small machine busy with their starts.
    let tasks = bench.size(40, 4);
    let service = Service::start(bench, &Plan::default())?;
    let watch = Watch::open(&service.http, "/events?kind=transition")?;
    // A pipe without a writer: the tasks wait without work for the machine.
    let gate = format!("{}/bench-gate", bench.sandbox.var("SLURM_BASE_RESULTS_DIR")?);
    let mut seconds = Vec::new();
    for _ in 0..bench.rounds() {
        bench.sandbox.login(&format!("rm -f {gate} && mkfifo {gate}"))?;
        let id = service.http.submit(&sweep(tasks, "polar", &format!("cat {gate}")))?;
        let running = format!("select count(*) from runs where job_id = '{id}' and started_at is not null");
        let began = Instant::now();
        while service.sql(&running)?.parse::<usize>()? < tasks {
            ensure!(began.elapsed() < TIMEOUT, "not all tasks run");
            std::thread::sleep(Duration::from_millis(500));
        }
        fs::write(bench.sandbox.local(&gate), "").context("the gate")?;
        let opened = Instant::now();
        // For those whose program had not come to it.
        bench.sandbox.login(&format!("rm -f {gate} && touch {gate}"))?;
        seconds.push(until_ended(&watch, &id, opened)?);
    }
    rows.push(
        Row::of(
            format!("{} running tasks end at once: until all ends are known", grouped(tasks)),
            "s",
            &seconds,
        )
        .note("includes what Slurm needs for their ends"),
    );
    Ok(())
}

/// The seconds until a watcher knows that a job has ended.
fn until_ended(watch: &Watch, id: &str, since: Instant) -> anyhow::Result<f64> {
    let ended = watch.until("the end of the sweep", TIMEOUT, |event| {
        event.text("/job_id") == Some(id)
            && matches!(event.text("/data/status"), Some("Done" | "Error" | "Canceled"))
    })?;
    Ok(ended.at.duration_since(since).as_secs_f64())
}
