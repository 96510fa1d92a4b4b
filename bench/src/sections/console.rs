//! The console as its visitors notice it: the list of many jobs, a page that lives while many jobs change, and a large log.

mod lists;
mod live;
mod logs;
mod stock;

use crate::{
    Bench,
    browser::{Browser, timed},
    row::Row,
    sandbox::BENCH_PARTITION,
    service::{Plan, Service},
    stats::{millis, percentile},
};

/// Each figure is of this many requests.
const REQUESTS: usize = 20;

pub(crate) fn run(bench: &Bench, rows: &mut Vec<Row>) -> anyhow::Result<()> {
    // Before the service starts, because it reads the cluster's partitions then.
    let _closed = bench.sandbox.close(BENCH_PARTITION)?;
    let mut service = Service::start(bench, &Plan::default())?;
    let finished = crate::stock::template(bench, &service)?;
    stock::fill(bench, &mut service, &finished)?;
    let browser = Browser::log_in(&service.http)?;
    lists::measure(bench, &service, &browser, rows)?;
    logs::measure(bench, &service, &browser, &finished, rows)?;
    live::measure(bench, &service, &browser, rows)
}

/// The time of some requests after one that does not count: the 90th percentile, with the median in the note.
fn asked(figure: &str, ask: impl Fn() -> anyhow::Result<usize>) -> anyhow::Result<Row> {
    let bytes = ask()?;
    let mut times = Vec::new();
    for _ in 0..REQUESTS {
        times.push(millis(timed(&ask)?.1));
    }
    let row = Row::of(format!("{figure}: p90 of {REQUESTS}"), "ms", &times).value(percentile(&times, 90.0));
    #[expect(clippy::cast_precision_loss, reason = "no page is near 2^52 bytes")]
    let kilobytes = bytes as f64 / 1e3;
    Ok(row.note(format!("p50 {:.1} ms; {kilobytes:.0} kB", percentile(&times, 50.0))))
}
