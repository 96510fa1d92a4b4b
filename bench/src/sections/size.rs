//! The cost of a long history: startup, memory, list pages, table sizes, and deletion of the oldest jobs.

use std::time::{Duration, Instant};

use anyhow::Context;

use crate::{
    Bench,
    http::Http,
    row::Row,
    service::{Plan, Service},
    stats::{count, grouped, median, millis, number, percentile},
    stock,
};

/// The most jobs per page.
const PAGE: usize = 200;
/// The number of the deep page.
const DEEP_PAGE: usize = 450;

pub(crate) fn run(bench: &Bench, rows: &mut Vec<Row>) -> anyhow::Result<()> {
    let mut service = Service::start(bench, &Plan::default())?;
    rows.push(memory(&service, 0)?);
    rows.push(start(bench, &mut service, 0)?);
    let template = stock::template(bench, &service)?;
    let mut stored = 0;
    for size in [100_000, 1_000_000] {
        let size = bench.size(size, size / 100) as u64;
        bench.say(&format!("creating a history of {size} jobs"));
        stock::fill(&mut service, &template, stored, size)?;
        stored = size;
        let started = start(bench, &mut service, size)?;
        pages(bench, &service, size, rows)?;
        rows.push(started);
        rows.push(memory(&service, size)?);
        for table in ["jobs", "slurm_metadata", "runs", "job_events"] {
            let [all, indices] = stock::megabytes(&service, table)?;
            rows.push(
                Row::new(format!("table `{table}`, {} jobs", grouped(size)), "MB", all)
                    .note(format!("including {indices:.0} MB of indexes")),
            );
        }
    }
    deletion(bench, &mut service, stored, rows)
}

/// Restarts the service with a retention time that makes it delete the oldest tenth of the jobs, and requests others meanwhile.
fn deletion(
    bench: &Bench,
    service: &mut Service<'_>,
    stored: u64,
    rows: &mut Vec<Row>,
) -> anyhow::Result<()> {
    let old = stored / 10;
    let keep = stock::ended_for(service, old)?;
    bench.say(&format!("deleting the oldest {old} of {stored} jobs"));
    service.stop()?;
    service.set("TAO_SLURM_KEEP_ENDED_JOBS", &format!("{keep}s"));
    service.launch()?;
    let (began, used) = (Instant::now(), service.usage()?.cpu);
    let mut times = Vec::new();
    while service.metric("tao_slurm_jobs_deleted_total", "")? < number(old) {
        for ahead in 0..50 {
            let one = Instant::now();
            service.http.get(&format!("/jobs/{}/status", stock::id(stored - 1 - ahead)))?.ok()?;
            times.push(millis(one.elapsed()));
        }
        anyhow::ensure!(began.elapsed() < Duration::from_mins(10), "the service does not delete them");
    }
    let took = began.elapsed();
    let processor = millis(service.usage()?.cpu.saturating_sub(used));
    rows.push(
        Row::new(
            format!("deletion of the oldest {} of {} jobs", grouped(old), grouped(stored)),
            "1/s",
            number(old) / took.as_secs_f64(),
        )
        .note(format!(
            "in {:.0} s; {processor:.0} ms of service CPU, including our requests",
            took.as_secs_f64()
        )),
    );
    rows.push(
        Row::of("`GET /jobs/{id}/status` during the deletion, 1 client: p99", "ms", &times)
            .value(percentile(&times, 99.0)),
    );
    Ok(())
}

fn memory(service: &Service<'_>, jobs: u64) -> anyhow::Result<Row> {
    let used = service.usage()?;
    let megabytes = |bytes| number(bytes) / 1e6;
    Ok(Row::new(format!("resident memory, {} stored jobs", grouped(jobs)), "MB", megabytes(used.memory))
        .note(format!("peak {:.0} MB", megabytes(used.memory_peak))))
}

/// Restarts the service once per round.
pub(super) fn start(bench: &Bench, service: &mut Service<'_>, jobs: u64) -> anyhow::Result<Row> {
    let mut times = Vec::new();
    for _ in 0..bench.rounds() {
        service.stop()?;
        service.launch()?;
        times.push(millis(service.ready_after));
    }
    Ok(Row::of(format!("startup until ready, {} stored jobs", grouped(jobs)), "ms", &times).at_most(1000.0))
}

fn pages(bench: &Bench, service: &Service<'_>, size: u64, rows: &mut Vec<Row>) -> anyhow::Result<()> {
    let http = &service.http;
    let newest = format!("/jobs?limit={PAGE}");
    let far = DEEP_PAGE.min(usize::try_from(size)? / PAGE - 2);
    let deep = format!("{newest}&page_token={}", token_of(http, &newest, far)?);
    let all = [
        ("newest page", newest.clone()),
        ("deep page", deep),
        ("failed jobs", format!("{newest}&status=Error")),
        ("jobs with a rare label", format!("{newest}&label=team%3Aaudio")),
        ("jobs created before a date", format!("{newest}&created_before=2026-01-01T02%3A00%3A00Z")),
    ];
    let mut times = vec![Vec::new(); all.len()];
    for _ in 0..bench.rounds() {
        for (times, (_, path)) in times.iter_mut().zip(&all) {
            times.push(page(http, path)?);
        }
    }
    let first = times[0].clone();
    for (times, (what, _)) in times.iter().zip(&all) {
        let row = Row::of(format!("`GET /jobs?limit={PAGE}` of {} jobs: {what}", grouped(size)), "ms", times);
        rows.push(match *what {
            "deep page" => row.less_than("newest page", &first).note(format!("page {far}")),
            _ => row,
        });
    }
    Ok(())
}

/// The median of ten requests, in milliseconds.
fn page(http: &Http, path: &str) -> anyhow::Result<f64> {
    let mut times = Vec::new();
    for _ in 0..10 {
        let began = Instant::now();
        http.get(path)?.ok().with_context(|| path.to_owned())?;
        times.push(millis(began.elapsed()));
    }
    Ok(median(&times))
}

/// The token of the page that is this many pages after the first.
fn token_of(http: &Http, newest: &str, pages: usize) -> anyhow::Result<String> {
    let mut path = newest.to_owned();
    let began = Instant::now();
    for walked in 1..=pages {
        let page = http.get(&path)?.ok()?;
        let token = page["next_page_token"].as_str().context("there are too few pages")?.to_owned();
        if walked == pages {
            return Ok(token);
        }
        path = format!("{newest}&page_token={token}");
        anyhow::ensure!(began.elapsed() < Duration::from_mins(5), "{} pages took too long", count(pages));
    }
    anyhow::bail!("no page was requested")
}
