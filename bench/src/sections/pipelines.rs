//! Pipelines: how fast a graph of 1,000 jobs is stored, and what it costs to wake the jobs that wait for one, beside many others.

use std::time::{Duration, Instant};

use anyhow::{Context, bail, ensure};
use serde_json::{Map, Value, json};

use crate::{
    Bench,
    row::Row,
    sandbox::BENCH_PARTITION,
    service::{Plan, Service},
    stats::{count, grouped},
    stock,
};

const TIMEOUT: Duration = Duration::from_mins(5);

/// How many jobs were woken, the blocks that were read for each, and for each look at a need. When a graph is stored, all its jobs look
/// at their needs once, so that is divided by the looks.
const BLOCKS: &str = "with s as (
        select shared_blks_hit + shared_blks_read as blocks, rows,
               query like 'update jobs set due_at%' as wakes, query like '%jobs::needs::needed%' as looks
        from pg_stat_statements
        where query like 'update jobs set due_at%' or query like '%from needs n where n.needed =%' or query like '%jobs::needs::needed%'
    ) select coalesce(sum(rows) filter (where wakes), 0) || '|'
             || coalesce(sum(blocks) filter (where not looks) / nullif(sum(rows) filter (where wakes), 0), 0) || '|'
             || coalesce(sum(blocks) filter (where looks) / nullif(sum(rows) filter (where looks), 0), 0)
      from s";

pub(crate) fn run(bench: &Bench, rows: &mut Vec<Row>) -> anyhow::Result<()> {
    let jobs = bench.size(1000, 20);
    let _closed = bench.sandbox.close(BENCH_PARTITION)?;
    let mut service = Service::start(bench, &Plan::default())?;
    service.sql("create extension pg_stat_statements")?;
    let before = blocks_of_a_wake(bench, &service, jobs, &mut Vec::new())?;
    let template = stock::template(bench, &service)?;
    let others = bench.size(100_000, 1000);
    bench.say(&format!("creating a history of {others} jobs"));
    stock::fill(&mut service, &template, 0, others as u64)?;
    let mut seconds = Vec::new();
    let mut blocks = Vec::new();
    for _ in 0..bench.rounds() {
        blocks.push(blocks_of_a_wake(bench, &service, jobs, &mut seconds)?);
    }
    rows.push(
        Row::of(format!("`POST /pipelines` with {} jobs", grouped(jobs)), "s", &seconds)
            .at_most(1.0)
            .note(format!("beside {} other jobs", grouped(others))),
    );
    // A scan of 100,000 jobs reads thousands of blocks.
    rows.push(
        Row::of("blocks that Postgres reads to wake a job and look at its needs", "", &blocks)
            .at_most(200.0)
            .note(format!("beside {} other jobs; {before:.0} without them", grouped(others))),
    );
    Ok(())
}

/// A job, and the others that need it or each other. They would wait in Slurm for ever.
fn graph(jobs: usize) -> Value {
    let job = |number: usize| {
        let needs: Vec<Value> = match number {
            0 => Vec::new(),
            // The first ten wait for one job; the others for two of those before them.
            1..=10 => vec![json!({"job": "j0"})],
            _ => [number / 2, number * 2 / 3].map(|other| json!({"job": format!("j{other}")})).into(),
        };
        let partition = if number == 0 { "polar" } else { BENCH_PARTITION };
        json!({
            "command": "true", "needs": needs,
            "resources": {"num_gpus": 0, "cpus_per_task": 1, "time_hours": 0.1},
            "backend_details": {"backend_type": "slurm", "partition": partition},
        })
    };
    let jobs: Map<String, Value> = (0..jobs).map(|number| (format!("j{number}"), job(number))).collect();
    json!({"jobs": jobs})
}

/// Stores a graph, waits until its first job has ended, and returns how many blocks were read to wake a job and to look
/// at a need of it.
fn blocks_of_a_wake(
    bench: &Bench,
    service: &Service<'_>,
    jobs: usize,
    seconds: &mut Vec<f64>,
) -> anyhow::Result<f64> {
    let body = graph(jobs);
    service.sql("select pg_stat_statements_reset()")?;
    let began = Instant::now();
    let stored = service.http.post("/pipelines", &body)?.ok()?;
    seconds.push(began.elapsed().as_secs_f64());
    let id = stored["id"].as_str().context("the answer has no id")?;
    let waiting =
        format!("select count(*) from jobs where spec #>> '{{pipeline,id}}' = '{id}' and phase = 'waiting'");
    let woken = jobs.min(11) - 1;
    let began = Instant::now();
    while service.sql(&waiting)?.parse::<usize>()? > jobs - 1 - woken {
        ensure!(began.elapsed() < TIMEOUT, "the jobs that need the first one were not woken");
        std::thread::sleep(Duration::from_millis(100));
    }
    let read = service.sql(BLOCKS)?;
    let read: Vec<f64> = read.split('|').map(str::parse).collect::<Result<_, _>>()?;
    let [wakes, of_wake, of_look] = read[..] else { bail!("three numbers") };
    ensure!(wakes >= count(woken), "{wakes} wake-ups, and at least {woken} were expected");
    ensure!(of_wake > 0.0 && of_look > 0.0, "the statements were not found");
    ensure!(
        service.http.post(&format!("/pipelines/{id}/cancel"), &Value::Null)?.status == 202,
        "the pipeline cannot be canceled"
    );
    let began = Instant::now();
    while service.active()? > 0 {
        ensure!(began.elapsed() < TIMEOUT, "{} jobs are still active", service.active()?);
        std::thread::sleep(Duration::from_millis(200));
    }
    bench.sandbox.clear()?;
    Ok(of_wake + of_look)
}
