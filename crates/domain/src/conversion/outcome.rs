//! The outcome of a conversion, from what a poll observed to its end.

use chrono::TimeDelta;
use remote::{
    ImageFile, Markers,
    script::{EXIT_BEGUN, EXIT_CLAIMED, EXIT_NO_MARKS, EXIT_NODE_FAILED},
};
use slurm::{QueueRow, SlurmState, Stage, timestamp};

use super::{Abandoned, Conversion, ConversionState, ConversionTransition, DEMAND_INTERVAL, Demand};
use crate::{
    clock::Timestamp,
    cluster::target::Cluster,
    run::{
        evidence::{ENDED_BY_TERM, Observation, Records, exit_record, is_of_this_end, other_claim},
        graces::{Graces, SLURMD_TIMEOUT},
    },
};

/// A conversion that is pending for this long is abandoned, and waiting jobs continue without it.
const QUEUE_PATIENCE: TimeDelta = TimeDelta::hours(1);
/// The tolerance between the cluster's times and ours.
const SAME_TIME: TimeDelta = TimeDelta::minutes(2);
/// How often in a row a run is repeated after the infrastructure ended it.
const MOST_MISHAPS: u32 = 3;
/// The wait for evidence that is not complete yet.
const EVIDENCE_INTERVAL: TimeDelta = TimeDelta::seconds(3);
/// The exit codes that the script returns without an exit record: the import did not run, or was interrupted. After a
/// program that returns one of these, the script leaves its exit record.
const WITHOUT_RECORD: [u8; 4] = [EXIT_NODE_FAILED, EXIT_NO_MARKS, EXIT_CLAIMED, EXIT_BEGUN];
/// The longest text of enroot in a message, in characters.
const LONGEST_ERROR: usize = 600;

/// The conversion after an observation; `None` if nothing changed. `ahead` is how far the cluster's clock is ahead of ours.
pub fn observe_conversion(
    conversion: &Conversion,
    seen: &Observation<'_>,
    ahead: TimeDelta,
    graces: &Graces,
    now: Timestamp,
) -> Option<Conversion> {
    if !matches!(conversion.state, ConversionState::InQueue | ConversionState::Running) {
        return None;
    }
    let mut next = conversion.clone();
    let seen = &seen.named(conversion.run.as_ref()?.token.as_str());
    match seen.queue {
        Some(row) => next.in_queue(row, seen, ahead, now),
        None if seen.queue_answered => next.vanished(seen, ahead, graces, now),
        None => {}
    }
    (next != *conversion).then_some(next)
}

impl Conversion {
    fn in_queue(&mut self, row: &QueueRow, seen: &Observation<'_>, ahead: TimeDelta, now: Timestamp) {
        let QueueRow { state, reason, nodes, .. } = row;
        let start = timestamp(row.start).map(|at| at - ahead);
        let stage = state.stage();
        // The queue does not report exit codes. Without an exit record, only accounting does. An accounting that lags behind
        // has the end of an earlier run.
        let record = seen.accounting.filter(|record| is_of_this_end(record, row));
        if stage == Stage::Unclear
            || *state == SlurmState::Failed
                && record.is_none()
                && !seen.has_exit_record(row)
                && seen.awaits_accounting(row, now + ahead)
        {
            return;
        }
        let Some(run) = &mut self.run else { return };
        run.missing_since = None;
        run.slurm_state = Some(state.clone());
        let id = run.slurm_id.map(|id| id.to_string()).unwrap_or_default();
        let image = &self.image;
        if stage == Stage::Final {
            let code = record.and_then(|record| record.exit_code);
            run.exit = code.filter(|exit| WITHOUT_RECORD.contains(&exit.code)).or(run.exit);
            run.began_at = start.filter(|_| !nodes.is_empty()).map(|at| at.min(now)).or(run.began_at);
            self.finish(now);
        } else if stage == Stage::Running {
            // After a requeue it starts again, so the latest start counts.
            run.began_at = start.map(|at| at.min(now)).or(run.began_at).or(Some(now));
            run.queued_since = None;
            self.state = ConversionState::Running;
            let since = run.began_at.unwrap_or(now).format("%H:%M:%S UTC");
            self.message = format!(
                "Converting the image {image}: Slurm job {id} has been running on {nodes} since {since}."
            );
        } else {
            run.began_at = None;
            // A requeue sets a new submit time. It is the only trace of a run between two polls.
            let submitted = timestamp(row.submit).map(|at| (at - ahead).min(now));
            let since = run.queued_since.unwrap_or(now);
            let since = submitted.filter(|at| *at - since > SAME_TIME).unwrap_or(since);
            run.queued_since = Some(since);
            if stage == Stage::Suspended {
                // It has its node, and cannot use it.
                run.queued_since = None;
            } else if now - since >= QUEUE_PATIENCE {
                self.abandoned.get_or_insert(Abandoned::NeverStarted);
            }
            self.state = ConversionState::InQueue;
            self.message = if reason.is_empty() || reason == "None" {
                format!("Converting the image {image}: Slurm job {id} is waiting for a node.")
            } else {
                format!("Converting the image {image}: Slurm job {id} is waiting for a node ({reason}).")
            };
        }
    }

    /// As for jobs: accounting decides how it ended, or else its exit record. Without both it counts as lost after a while.
    fn vanished(&mut self, seen: &Observation<'_>, ahead: TimeDelta, graces: &Graces, now: Timestamp) {
        let Some(run) = &mut self.run else { return };
        let row = seen.accounting;
        let exit = seen.markers.and_then(|markers| exit_record(markers, run.slurm_id));
        if let Some(row) = row.filter(|row| row.state.is_final()) {
            run.slurm_state = Some(row.state.clone());
            run.exit = row.exit_code.or(run.exit);
            run.began_at = timestamp(row.start).map(|at| (at - ahead).min(now)).or(run.began_at);
            self.finish(now);
        } else if exit.is_some() {
            run.slurm_state = None;
            self.finish(now);
        } else if seen.records != Records::Unknown && row.is_none() {
            let since = *run.missing_since.get_or_insert(now);
            if now - since >= graces.missing {
                run.slurm_state = None;
                self.finish(now);
            }
        }
    }

    fn finish(&mut self, now: Timestamp) {
        self.state = ConversionState::Finishing;
        self.message = format!("Converting the image {}: checking the result.", self.image);
        if let Some(run) = &mut self.run {
            run.finishing_since = Some(now);
        }
    }
}

/// What was found of a conversion that Slurm reports finished.
#[derive(Debug, Clone, Copy)]
pub struct ConversionFindings<'a> {
    pub markers: &'a Markers,
    /// The end of enroot's standard error.
    pub err_tail: &'a [u8],
    /// The state of its target file, on the login host.
    pub file: ImageFile,
}

/// Concludes a conversion that Slurm reports finished.
pub fn conclude_conversion(
    conversion: &Conversion,
    found: &ConversionFindings<'_>,
    demand: &Demand,
    cluster: &Cluster,
    graces: &Graces,
    now: Timestamp,
) -> ConversionTransition {
    let mut next = conversion.clone();
    let due_at = next.conclude(found, demand, cluster, graces, now);
    ConversionTransition { conversion: next, due_at }
}

impl Conversion {
    fn conclude(
        &mut self,
        found: &ConversionFindings<'_>,
        demand: &Demand,
        cluster: &Cluster,
        graces: &Graces,
        now: Timestamp,
    ) -> Option<Timestamp> {
        let Some(run) = self.run.clone() else {
            self.state = ConversionState::Requested;
            return Some(now);
        };
        if found.file == ImageFile::Whole {
            self.ready(run.target, run.began_at.or(run.submitted_at), now);
            return None;
        }
        let recorded = exit_record(found.markers, run.slurm_id).map(|exit| exit.code);
        // Another Slurm job holds the run, so ours did nothing.
        if let (None, Some(claim)) = (recorded, other_claim(found.markers, run.slurm_id)) {
            if let Some(run) = &mut self.run {
                (run.slurm_id, run.slurm_state, run.exit) = (Some(claim), None, None);
                (run.missing_since, run.finishing_since, run.queued_since) = (None, None, None);
            }
            self.state = ConversionState::InQueue;
            return Some(now + DEMAND_INTERVAL);
        }
        let returned = run.exit.filter(|exit| exit.signal == 0).map(|exit| exit.code);
        let code = recorded.or(returned.filter(|code| !WITHOUT_RECORD.contains(code)));
        // The exit record or the file may still become visible through the shared file system.
        let awaited = code.is_none() || code == Some(0) || found.file == ImageFile::Unread;
        // Another holder of the run may still be importing. A second import would replace its file.
        let taken = match returned {
            Some(EXIT_CLAIMED) => found.markers.run_claim.is_none(),
            code => code == Some(EXIT_BEGUN),
        };
        let grace =
            if taken && recorded.is_none() { graces.finish.max(SLURMD_TIMEOUT) } else { graces.finish };
        let until = run.finishing_since.unwrap_or(now) + grace;
        let is_decisive = matches!(run.slurm_state, Some(SlurmState::Completed | SlurmState::Failed) | None);
        if awaited && is_decisive && now < until {
            return Some((now + EVIDENCE_INTERVAL).min(until));
        }
        self.judge(run.slurm_state.as_ref(), code, found, demand, cluster, now)
    }

    fn judge(
        &mut self,
        state: Option<&SlurmState>,
        code: Option<u8>,
        found: &ConversionFindings<'_>,
        demand: &Demand,
        cluster: &Cluster,
        now: Timestamp,
    ) -> Option<Timestamp> {
        let settings = &cluster.images;
        let why = match (self.abandoned, state) {
            (Some(Abandoned::Unneeded), _) if demand.waiters == 0 => {
                *self = self.shelved().conversion;
                return None;
            }
            (Some(Abandoned::Unneeded), _) => {
                self.repeat();
                return Some(now);
            }
            (Some(Abandoned::NeverStarted), _) => "its Slurm job was pending for an hour".to_owned(),
            (None, Some(SlurmState::Timeout | SlurmState::Deadline)) => {
                format!("it took longer than {} minutes (conversion_minutes)", settings.conversion_minutes)
            }
            (None, Some(SlurmState::OutOfMemory)) => {
                format!(
                    "it needed more than {} GiB of memory (conversion_memory_gb)",
                    settings.conversion_memory_gb
                )
            }
            (None, Some(SlurmState::Cancelled)) => "its Slurm job was canceled on the cluster".to_owned(),
            (None, Some(SlurmState::Completed | SlurmState::Failed) | None) if code == Some(0) => format!(
                "its Slurm job succeeded, but {} is not a complete image on the login host; the cache directory must be on \
                 a file system that all nodes share",
                self.run.as_ref().map_or("the file", |run| run.target.as_str())
            ),
            (None, Some(SlurmState::Completed | SlurmState::Failed) | None)
                if code.is_some_and(|code| code != ENDED_BY_TERM) =>
            {
                enroot_error(found.err_tail, code.unwrap_or_default())
            }
            // A node failed, the Slurm job was preempted or ended, or the reason is unknown: the image is not at fault.
            (None, state) => {
                if self.mishaps < MOST_MISHAPS {
                    self.mishaps += 1;
                    self.repeat();
                    return Some(now);
                }
                format!("the cluster ended its Slurm job {} times", self.mishaps + 1)
                    + &state.map_or(String::new(), |state| format!(" ({state})"))
                    + &format!("; the last time: {}", error_line(found.err_tail))
            }
        };
        self.failed(why, now);
        None
    }

    /// Starts over, with a check of the cache: another service may have created the file meanwhile.
    fn repeat(&mut self) {
        *self = Self { abandoned: None, ..self.reopened() };
        self.message =
            format!("Converting the image {}: the cluster ended the conversion; retrying.", self.image);
    }
}

fn enroot_error(err_tail: &[u8], code: u8) -> String {
    format!("enroot import exited with code {code}: {}", error_line(err_tail))
}

/// The last line with an error, or else the last line that is not srun's report of the end. An answer that is not JSON has its error of
/// HTTP before it, if it has one.
fn error_line(err_tail: &[u8]) -> String {
    let text = String::from_utf8_lossy(err_tail);
    let lines = || text.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with("srun: "));
    let is_error = |line: &&str| {
        ["[ERROR]", "curl: (", "Checksum mismatch", "FATAL ERROR", "tao-slurm:"]
            .iter()
            .any(|word| line.contains(word))
    };
    let says_more = |line: &&str| is_error(line) && !line.ends_with("Could not process JSON input");
    let line = lines().rfind(says_more).or_else(|| lines().rfind(is_error)).or_else(|| lines().next_back());
    line.unwrap_or("no output")
        .chars()
        .map(|c| if c.is_control() { ' ' } else { c })
        .take(LONGEST_ERROR)
        .collect()
}
