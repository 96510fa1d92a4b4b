//! Whether the service counts the GPU time of the run as Slurm does.

use std::{
    collections::HashSet,
    thread,
    time::{Duration, Instant},
};

use anyhow::Context;
use chrono::DateTime;

use crate::{
    evidence::{Evidence, job_of, slurm_place},
    ledger::Ledger,
    now,
    repeat::repeat,
    sandbox::Sandbox,
    service::Service,
};

/// Longer than the service takes to read what the last job held, and what accounting corrected of it.
const PATIENCE: Duration = Duration::from_mins(7);

/// Waits until the GPU seconds in `GET /stats` equal those of sacct; the finding if they do not.
///
/// An attempt may have had a second Slurm job, under another id, after a reply was lost or a controller killed. Its second or two are known
/// to the service only if it has seen that job, so they may be counted or not. Without such copies both bounds are the same.
pub(crate) fn compare(
    sandbox: &Sandbox,
    service: &Service,
    ledger: &Ledger,
    evidence: &Evidence,
) -> anyhow::Result<Vec<String>> {
    let ids: HashSet<u64> = evidence.slurm_ids().collect();
    let (least, most) = accounted(sandbox, ledger, &ids)?;
    #[expect(clippy::cast_possible_truncation, reason = "seconds since 1970")]
    let since =
        DateTime::from_timestamp(ledger.began() as i64 - 60, 0).context("the beginning of the run")?;
    let path = format!("/stats?since={}", since.format("%Y-%m-%dT%H:%M:%SZ"));
    let pause = || thread::sleep(Duration::from_secs(2));
    let began = Instant::now();
    loop {
        let stats = repeat(|| service.read(&path), pause)?.context("GET /stats")?;
        let hours = stats["totals"]["gpu_hours"].as_f64().context("gpu_hours")?;
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "whole seconds of one run"
        )]
        let counted = (hours * 3600.0).round() as u64;
        if (least..=most).contains(&counted) {
            return Ok(Vec::new());
        }
        if began.elapsed() > PATIENCE {
            return Ok(vec![format!(
                "the service counts {counted} GPU seconds, and sacct {least} to {most}"
            )]);
        }
        pause();
    }
}

/// The GPU seconds of these Slurm jobs in accounting, and those of all with the names of our attempts. Nothing runs any more.
fn accounted(sandbox: &Sandbox, ledger: &Ledger, ids: &HashSet<u64>) -> anyhow::Result<(u64, u64)> {
    let minutes = ((now() - ledger.began()) / 60.0).ceil() + 1.0;
    let since = format!("now-{minutes:.0}minutes");
    let columns = "JobID,JobName,ElapsedRaw,End,AllocTRES";
    let rows = sandbox.ask(&["sacct", "-a", "-D", "-X", "-n", "-P", "-S", &since, "-o", columns]);
    let seconds = |row: &str| -> Option<(u64, u64)> {
        let fields: Vec<&str> = row.split('|').collect();
        let [id, name, elapsed, end, resources] = fields[..] else { return None };
        // Accounting has lost the end of this run together with a killed daemon (`sacctmgr show runawayjobs`): its time grows for ever.
        if end == "Unknown" {
            return None;
        }
        let (id, _) = slurm_place(id)?;
        let (job, _) = job_of(name)?;
        let gpus =
            resources.split(',').find_map(|entry| entry.strip_prefix("gres/gpu=")?.parse::<u64>().ok())?;
        let seconds = elapsed.parse::<u64>().ok().filter(|_| ledger.lock().jobs.contains_key(&job))? * gpus;
        Some((if ids.contains(&id) { seconds } else { 0 }, seconds))
    };
    let sum = |(least, most): (u64, u64), (of_ours, of_all): (u64, u64)| (least + of_ours, most + of_all);
    Ok(rows.context("sacct of GPUs")?.lines().filter_map(seconds).fold((0, 0), sum))
}
