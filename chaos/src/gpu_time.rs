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
    sandbox::Sandbox,
    service::Service,
};

/// Longer than the service takes to read what the last job held.
const PATIENCE: Duration = Duration::from_mins(5);

/// Waits until the GPU seconds in `GET /stats` equal those of sacct; the finding if they do not.
///
/// A Slurm job that a killed controller started a second time, under another id, has no attempt, so its time counts for no owner.
pub(crate) fn compare(
    sandbox: &Sandbox,
    service: &Service,
    ledger: &Ledger,
    evidence: &Evidence,
) -> anyhow::Result<Vec<String>> {
    let ids: HashSet<u64> = evidence.slurm_ids().collect();
    let accounted = accounted(sandbox, ledger, &ids)?;
    #[expect(clippy::cast_possible_truncation, reason = "seconds since 1970")]
    let since =
        DateTime::from_timestamp(ledger.began() as i64 - 60, 0).context("the beginning of the run")?;
    let path = format!("/stats?since={}", since.format("%Y-%m-%dT%H:%M:%SZ"));
    let began = Instant::now();
    loop {
        let stats = service.read(&path)?.context("GET /stats")?;
        let hours = stats["totals"]["gpu_hours"].as_f64().context("gpu_hours")?;
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "whole seconds of one run"
        )]
        let counted = (hours * 3600.0).round() as u64;
        if counted == accounted {
            return Ok(Vec::new());
        }
        if began.elapsed() > PATIENCE {
            return Ok(vec![format!("the service counts {counted} GPU seconds, and sacct {accounted}")]);
        }
        thread::sleep(Duration::from_secs(2));
    }
}

/// The GPU seconds of these Slurm jobs in accounting.
fn accounted(sandbox: &Sandbox, ledger: &Ledger, ids: &HashSet<u64>) -> anyhow::Result<u64> {
    let minutes = ((now() - ledger.began()) / 60.0).ceil() + 1.0;
    let since = format!("now-{minutes:.0}minutes");
    let columns = "JobID,JobName,ElapsedRaw,AllocTRES";
    let rows = sandbox.ask(&["sacct", "-a", "-D", "-X", "-n", "-P", "-S", &since, "-o", columns]);
    let seconds = |row: &str| -> Option<u64> {
        let fields: Vec<&str> = row.split('|').collect();
        let [id, name, elapsed, resources] = fields[..] else { return None };
        let (id, _) = slurm_place(id)?;
        let (job, _) = job_of(name)?;
        let gpus =
            resources.split(',').find_map(|entry| entry.strip_prefix("gres/gpu=")?.parse::<u64>().ok())?;
        let is_ours = ids.contains(&id) && ledger.lock().jobs.contains_key(&job);
        is_ours.then(|| elapsed.parse::<u64>().ok()).flatten().map(|elapsed| elapsed * gpus)
    };
    Ok(rows.context("sacct of GPUs")?.lines().filter_map(seconds).sum())
}
