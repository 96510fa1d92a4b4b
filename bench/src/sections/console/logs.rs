//! A log of a gigabyte whose bars of progress were drawn again and again: its first window, and a search in it.

use std::{fs, io::Write as _};

use anyhow::{Context, ensure};

use crate::{
    Bench,
    browser::{Browser, timed},
    row::Row,
    service::Service,
    stats::{millis, number},
};

/// The line that is searched for, once in the log.
const NEEDLE: &str = "RuntimeError: CUDA out of memory";

pub(super) fn measure(
    bench: &Bench,
    service: &Service<'_>,
    browser: &Browser,
    job: &str,
    rows: &mut Vec<Row>,
) -> anyhow::Result<()> {
    let size = bench.size(1_000_000_000, 5_000_000);
    let name = service.sql(&format!(
        "select token || '-' || slurm_job_id from slurm_metadata where job_id = '{job}' order by attempt desc limit 1"
    ))?;
    let base = bench.sandbox.var("SLURM_BASE_RESULTS_DIR")?;
    let log = bench.sandbox.local(&format!("{base}/slurm-logs/{name}/main.out"));
    ensure!(log.exists(), "{} is missing", log.display());
    bench.say("writing the log");
    write(&log, size)?;
    let outcome = read(service, browser, job, size, rows);
    fs::write(&log, "")?;
    outcome
}

fn read(
    service: &Service<'_>,
    browser: &Browser,
    job: &str,
    size: usize,
    rows: &mut Vec<Row>,
) -> anyhow::Result<()> {
    let before = service.usage()?;
    #[expect(clippy::cast_precision_loss, reason = "no log is near 2^52 bytes")]
    let of = format!("of a log of {:.1} GB", size as f64 / 1e9);
    let page = format!("/ui/jobs/{job}/logs?stream=out");
    let (_, first) = timed(|| browser.page(&page))?;
    rows.push(
        Row::new(format!("page of the end {of}, the first one"), "ms", millis(first))
            .note("with the SSH connection"),
    );
    let row = super::asked(&format!("page of the end {of}"), || Ok(browser.page(&page)?.len()))?;
    rows.push(row.at_most(200.0));
    let middle = format!("{page}&offset={}", size / 2);
    let row = super::asked(&format!("page of the middle {of}"), || Ok(browser.page(&middle)?.len()))?;
    rows.push(row.at_most(200.0));
    let call = format!("/jobs/{job}/logs/search?stream=out&q=CUDA%20out%20of%20memory");
    let search = || {
        let found = service.http.get(&call)?.ok()?;
        let hit = found["hits"][0]["excerpt"].as_str().context("the search found nothing")?.to_owned();
        ensure!(hit.contains(NEEDLE), "the search found {hit}");
        Ok(hit.len())
    };
    rows.push(super::asked(&format!("search {of} for one line near its end"), search)?.at_most(2000.0));
    let searched = format!("{page}&q=CUDA%20out%20of%20memory");
    let row = super::asked(&format!("page of a search {of}"), || {
        let html = browser.page(&searched)?;
        // The text that was searched for is marked.
        ensure!(html.contains("Tried to allocate"), "the page does not show the hit");
        Ok(html.len())
    })?;
    rows.push(row.at_most(2000.0));
    let after = service.usage()?;
    let megabytes = |bytes| number(bytes) / 1e6;
    rows.push(
        Row::new("resident memory after these requests", "MB", megabytes(after.memory))
            .at_most(megabytes(before.memory) + 50.0)
            .note(format!(
                "{:.0} MB before; peak {:.0} MB",
                megabytes(before.memory),
                megabytes(after.memory_peak)
            )),
    );
    Ok(())
}

/// Writes epochs of a training: each a bar that is drawn again and again, and a line of figures.
fn write(log: &std::path::Path, size: usize) -> anyhow::Result<()> {
    let mut epoch = Vec::new();
    for step in 0..500 {
        write!(
            epoch,
            "\rEpoch 12: {:3}%|{:<40}| {:4}/500 [00:{:02}<00:12, 41.20it/s, loss=1.234]",
            step / 5,
            "█".repeat(step / 13),
            step,
            step / 9
        )?;
    }
    epoch.extend_from_slice(
        "\nepoch 12 train_loss 1.2340 val_loss 1.4810 lr 0.00030 grad_norm 0.91\n".as_bytes(),
    );
    let mut file = std::io::BufWriter::with_capacity(1 << 20, fs::File::create(log)?);
    let mut written = 0;
    let mut is_found = false;
    while written < size {
        if !is_found && written > size / 20 * 19 {
            is_found = true;
            writeln!(file, "[rank3]: {NEEDLE}. Tried to allocate 2.00 GiB.")?;
        }
        file.write_all(&epoch)?;
        written += epoch.len();
    }
    file.flush()?;
    Ok(())
}
