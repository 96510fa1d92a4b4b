//! The cost of one poll with running jobs that write to their status files. The jobs belong to the service. In Slurm,
//! allocations without a process replace the batch jobs that the service submitted.

use std::{
    fmt::Write as _,
    fs,
    io::Write as _,
    path::{Path, PathBuf},
};

use anyhow::Context;

use crate::{
    Bench,
    allocations::Allocations,
    polls::{grow, plan, polls, until},
    row::{Row, each},
    sandbox::BENCH_PARTITION,
    service::Service,
    stats::{count, grouped, median},
};

/// New status lines of each job per poll.
const LINES: usize = 10;

pub(crate) fn run(bench: &Bench, rows: &mut Vec<Row>) -> anyhow::Result<()> {
    let jobs = bench.size(1000, 3);
    // Before the service starts, because it reads the cluster's partitions then.
    let closed = bench.sandbox.close(BENCH_PARTITION)?;
    let mut service = Service::start(bench, &plan())?;
    grow(bench, &service, jobs)?;
    service.stop()?;
    bench.sandbox.clear()?;
    bench.say(&format!("allocating {jobs} jobs"));
    let tokens = service.sql("select token from slurm_metadata")?;
    let allocations = Allocations::of(&bench.sandbox, &tokens.lines().collect::<Vec<_>>())?;
    // The queue times belong to the batch jobs: the allocations were not requeued.
    service.sql(&format!(
        "update slurm_metadata a set slurm_job_id = slurm.id \
         from (values {}) as slurm(name, id) where a.token = slurm.name;
         update runs set queued_since = null",
        allocations.values()
    ))?;
    let files = status_files(bench, &service)?;
    service.launch()?;
    until(&service, "running", jobs)?;
    let unchanged = polls(bench, &service, |_| Ok(()))?;
    rows.push(unchanged.row(&format!("{} running jobs without new status lines", grouped(jobs))));
    let cost = polls(bench, &service, |round| files.iter().try_for_each(|file| write_lines(file, round)))?;
    rows.push(cost.row(&format!("{} running jobs, each with {LINES} new status lines", grouped(jobs))));
    rows.push(Row::new("the same, per job", "ms", each(median(&cost.cpu), jobs)));
    rows.push(Row::of(
        format!("remote commands per poll: {} running jobs", grouped(jobs)),
        "",
        &cost.commands,
    ));
    let lines = service.sql("select count(*) from job_events where kind = 'status'")?.parse::<usize>()?;
    rows.push(
        Row::new("status lines recorded as events", "", count(lines))
            .at_least(count(jobs * LINES * bench.rounds())),
    );
    // Stop the service first: it need not see the jobs end.
    drop(service);
    drop((allocations, closed));
    Ok(())
}

/// The status files of the jobs. Also writes the note of the batch script that the file was empty at the start.
fn status_files(bench: &Bench, service: &Service<'_>) -> anyhow::Result<Vec<PathBuf>> {
    let base = bench.sandbox.var("SLURM_BASE_RESULTS_DIR")?;
    let ids = service.sql("select id from jobs")?;
    let file = |id: &str| -> anyhow::Result<PathBuf> {
        let note = bench.sandbox.local(&format!("{base}/state/{id}/1/status_from"));
        fs::write(&note, "run 0\n\n").with_context(|| note.display().to_string())?;
        Ok(bench.sandbox.local(&format!("{base}/results/{id}/status.json")))
    };
    ids.lines().map(file).collect()
}

/// Appends lines as a training writes them.
fn write_lines(file: &Path, round: usize) -> anyhow::Result<()> {
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
    let mut file = fs::OpenOptions::new().create(true).append(true).open(file)?;
    Ok(file.write_all(text.as_bytes())?)
}
