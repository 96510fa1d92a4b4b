//! The retry decision: whether a failed attempt is retried, and after how long.

use std::collections::BTreeSet;

use chrono::TimeDelta;
use remote::{Markers, script::EXIT_LIMIT};
use slurm::{NodeName, SlurmState};

use crate::{
    clock::Timestamp,
    job::stored::Job,
    request::restart::RestartCause,
    run::{
        diagnosis::{Cause, Diagnosis},
        exclusion::{excluded, names},
        graces::RetryTerms,
    },
};

/// Whether the job is retried.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum RetryDecision {
    Yes { wait: TimeDelta, why: String },
    No { why: String },
}

/// The same fault on this many different nodes is the job's own.
const SAME_FAULT_NODES: usize = 3;
/// After this many failures by cached files of the image, no conversion makes one that works.
const SAME_FAULT_FILES: usize = 3;

/// Decides about a retry after a failure with this diagnosis; `job.failures` already includes it if it counts. `spare` is
/// how many nodes the job can exclude, if that is known.
pub(crate) fn decide_retry(
    job: &Job,
    diagnosis: Option<&Diagnosis>,
    terms: &RetryTerms,
    spare: Option<usize>,
    now: Timestamp,
) -> RetryDecision {
    let no = |why: String| RetryDecision::No { why };
    let Some(found) = diagnosis else {
        return no("Not retried: there is no sign of an infrastructure failure.".to_owned());
    };
    if found.cause == Cause::User {
        return no(format!("Not retried: {}.", found.why));
    }
    if !job.spec.restart.on.contains(&found.end) {
        let end = <&str>::from(&found.end);
        return no(format!("Not retried: `restart.on` does not list `{end}`, and {}.", found.why));
    }
    if let Some(why) = used_up(job) {
        return no(why);
    }
    let same = || job.failures.iter().filter(|past| past.signature == found.signature);
    if found.cause == Cause::CachedFile && same().count() >= SAME_FAULT_FILES {
        return no(format!(
            "Not retried: the cached file of the image could not be used {} times: {}.",
            same().count(),
            found.why
        ));
    }
    let nodes: BTreeSet<&NodeName> = same().flat_map(|past| &past.nodes).collect();
    if nodes.len() >= SAME_FAULT_NODES {
        let names: Vec<&str> = nodes.iter().map(|node| node.as_str()).collect();
        return no(format!(
            "Not retried: the same fault ({}) occurred on {} different nodes ({}), so the nodes are not the cause: {}.",
            found.signature,
            names.len(),
            names.join(", "),
            found.why
        ));
    }
    let (retry, budget) = (failed_attempts(job), job.spec.max_retries);
    if retry > budget {
        return no(format!("Not retried: all {budget} retries are used: {}.", found.why));
    }
    let wait = wait(job, retry, terms);
    let exclusions = match excluded(job, terms, spare, now).as_slice() {
        [] => String::new(),
        nodes => format!(", excluding {}", names(nodes)),
    };
    let remedy = if found.cause == Cause::CachedFile { "; the cache is checked first" } else { "" };
    let why = format!(
        "Retrying in {} s (retry {retry} of {budget}){exclusions}: {}{remedy}.",
        wait.num_seconds(),
        found.why
    );
    RetryDecision::Yes { wait, why }
}

/// An attempt that ended sooner did nothing, so it counts as a failure.
const SHORT_RUN: u32 = 10;
/// The same of one that ended by its exit code: programs start slowly, and its own fault may have the same code.
const SHORT_PROGRAM: u32 = 60;

/// An end after which the job's owner wants it to go on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct PlannedEnd {
    /// How it ended, in a clause.
    pub(crate) why: String,
    /// By an exit code, which may have another cause.
    pub(crate) by_code: bool,
    /// Whether the attempt did nothing.
    pub(crate) is_short: bool,
}

/// How the run ended, if the job goes on after that. A run that has reported a failure has not been interrupted.
pub(crate) fn planned_end(job: &Job, markers: &Markers) -> Option<PlannedEnd> {
    let (run, restart) = (&job.run, &job.spec.restart);
    if run.progress.has_failed() || run.kill_reason.is_some() {
        return None;
    }
    let code = run.exit.filter(|exit| exit.signal == 0).map(|exit| exit.code);
    let listed = |end: &RestartCause, why: &str| {
        let is_short = run.elapsed() < SHORT_RUN;
        restart.on.contains(end).then(|| PlannedEnd { why: why.to_owned(), by_code: false, is_short })
    };
    match run.state {
        Some(SlurmState::Timeout) => listed(&RestartCause::Timeout, "it reached its time limit"),
        Some(SlurmState::Preempted) => {
            listed(&RestartCause::Preempted, "a job of higher priority took its nodes")
        }
        // Its owner may want to pause it in the same second.
        Some(SlurmState::Failed | SlurmState::Cancelled) | None
            if markers.limited && code == Some(EXIT_LIMIT) =>
        {
            listed(&RestartCause::Timeout, "it reached its own time limit")
        }
        Some(SlurmState::Failed) | None => {
            let code = code.filter(|code| restart.exit_codes.contains(code))?;
            let is_short = run.elapsed() < SHORT_PROGRAM;
            Some(PlannedEnd { why: format!("it exited with code {code}"), by_code: true, is_short })
        }
        _ => None,
    }
}

/// Decides whether a job goes on after a planned end. `job.failures` already includes it if the run was short.
pub(crate) fn decide_restart(job: &Job, end: &PlannedEnd, terms: &RetryTerms) -> RetryDecision {
    let no = |why: String| RetryDecision::No { why };
    if let Some(why) = used_up(job) {
        return no(why);
    }
    let (failed, budget) = (failed_attempts(job), job.spec.max_retries);
    if end.is_short && failed > budget {
        return no(format!(
            "Not restarted: all {budget} restarts after failures and short attempts are used."
        ));
    }
    let wait =
        if end.is_short { wait(job, failed, terms) } else { job.spec.restart.delay().unwrap_or_default() };
    let left = job.spec.restart.seconds_left(job.run.used_seconds());
    let left = left.map(|left| format!("; {} of its total time are left", shown(left)));
    let when = if wait.is_zero() { String::new() } else { format!(" in {} s", wait.num_seconds()) };
    RetryDecision::Yes { wait, why: format!("Restarting{when}: {}{}.", end.why, left.unwrap_or_default()) }
}

/// Why the job may not go on, if it has run as long as it may.
fn used_up(job: &Job) -> Option<String> {
    let left = job.spec.restart.seconds_left(job.run.used_seconds())?;
    let all = shown(job.spec.restart.max_total_seconds?);
    (left < SHORT_RUN)
        .then(|| format!("Not restarted: it has run for all {all} of `restart.max_total_hours`."))
}

fn shown(seconds: u32) -> String {
    match seconds {
        0..600 => format!("{seconds} s"),
        600..36_000 => format!("{} min", seconds / 60),
        _ => format!("{} hours", seconds / 3600),
    }
}

/// The attempts that failed since the owner last retried the job, with the present one.
fn failed_attempts(job: &Job) -> u32 {
    let ended = job.failures.iter().filter(|past| !past.requeued);
    let attempts: BTreeSet<u32> = ended.map(|past| past.attempt).collect();
    u32::try_from(attempts.len()).unwrap_or(u32::MAX)
}

/// The wait doubles with each failure, and differs by up to a fifth between jobs, so that a hundred jobs that failed
/// together are not retried together.
fn wait(job: &Job, failed: u32, terms: &RetryTerms) -> TimeDelta {
    let first = job.spec.restart.delay().unwrap_or(terms.first_wait).num_milliseconds();
    let doubled = first.saturating_mul(1_i64 << failed.saturating_sub(1).min(20));
    let bounded = doubled.min(terms.longest_wait.num_milliseconds().max(first));
    let spread = i64::try_from(job.id.get().as_u128() % 401).unwrap_or(200) - 200;
    TimeDelta::milliseconds(bounded + bounded * spread / 1000)
}

#[cfg(test)]
mod tests;
