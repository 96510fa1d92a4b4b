//! The verdict: the final status of an ended job, and the message that explains it.

use remote::script::EXIT_LIMIT;
use slurm::{ExitCode, SlurmState};

use super::{Findings, evidence::has_exit_record};
use crate::{
    job::{
        status::Status,
        stored::{DesiredState, Job},
    },
    progress::status_file::StatusWord,
    request::spec::Work,
    run::evidence::ENDED_BY_TERM,
};

pub(super) struct Verdict {
    pub(super) status: Status,
    pub(super) message: String,
    /// The verdict is an error only because the job has not reported its success.
    pub(super) needs_status_line: bool,
}

impl Verdict {
    fn new(status: Status, message: impl Into<String>) -> Self {
        Self { status, message: message.into(), needs_status_line: false }
    }

    fn error(message: &str, found: &Findings<'_>) -> Self {
        Self::new(Status::Error, with_log(message, found))
    }
}

/// The verdict on a job whose evidence is complete.
pub(super) fn verdict(job: &Job, canceled_itself: bool, found: &Findings<'_>) -> Verdict {
    let (state, exit) =
        job.attempt.as_ref().map_or((None, None), |attempt| (attempt.slurm_state.as_ref(), attempt.exit));
    let failed = exit.is_some_and(|exit| !exit.is_success());
    // Without a state of Slurm the exit code decides. A controller that was killed may report a failed launch for a job
    // that ran to its end, or a failure because its repetition failed.
    let completed = match state {
        Some(SlurmState::LaunchFailed) | None => exit.is_some(),
        Some(SlurmState::Failed) => has_exit_record(job, found.markers),
        Some(state) => *state == SlurmState::Completed,
    };
    if completed && !failed {
        return success(job, found);
    }
    ended_after_final_status(job, state, exit)
        .unwrap_or_else(|| failure(job, state, exit, canceled_itself, found))
}

/// The verdict on a job that exited with code 0.
fn success(job: &Job, found: &Findings<'_>) -> Verdict {
    match (job.progress.final_status(), &job.spec.work) {
        (Some(StatusWord::Success), _) => Verdict::new(Status::Done, "Done."),
        (Some(StatusWord::Failure), _) => Verdict::new(Status::Error, reported_failure(job)),
        (Some(StatusWord::Started | StatusWord::Running) | None, Work::Command { .. }) => {
            Verdict::new(Status::Done, "Done: the command exited with code 0.")
        }
        (Some(StatusWord::Started | StatusWord::Running) | None, Work::Tao { .. }) => {
            Verdict { needs_status_line: true, ..Verdict::error(no_success(job, found), found) }
        }
    }
}

/// The verdict on a job that had reported its final status before it was ended from outside: by the service, to free its
/// nodes, by its time limit, or by a controller that had forgotten it.
fn ended_after_final_status(
    job: &Job,
    state: Option<&SlurmState>,
    exit: Option<ExitCode>,
) -> Option<Verdict> {
    if matches!(job.desired, DesiredState::Cancel | DesiredState::Delete) {
        return None;
    }
    let ended = matches!(state, Some(SlurmState::Cancelled | SlurmState::Timeout));
    let lost = state.is_none() && exit.is_none_or(|exit| exit.code == ENDED_BY_TERM);
    match job.progress.final_status()? {
        StatusWord::Success if ended => {
            Some(Verdict::new(Status::Done, "Done: the job reported success before it was ended."))
        }
        StatusWord::Success if lost => {
            Some(Verdict::new(Status::Done, "Done: the job reported success before Slurm lost it."))
        }
        StatusWord::Failure if ended => Some(Verdict::new(Status::Error, reported_failure(job))),
        StatusWord::Success | StatusWord::Failure | StatusWord::Started | StatusWord::Running => None,
    }
}

fn failure(
    job: &Job,
    state: Option<&SlurmState>,
    exit: Option<ExitCode>,
    canceled_itself: bool,
    found: &Findings<'_>,
) -> Verdict {
    let wanted = job.desired == DesiredState::Run;
    let canceled = || {
        let message = if wanted { "Canceled on the cluster, not by this service." } else { "Canceled." };
        Verdict::new(Status::Canceled, message)
    };
    let failed = |state: &SlurmState| {
        let reason = job.attempt.as_ref().and_then(|attempt| attempt.reason.as_deref()).unwrap_or("None");
        Verdict::error(&failed_message(state, exit, reason), found)
    };
    if found.markers.limited && exit.is_some_and(|exit| exit.code == EXIT_LIMIT) {
        return Verdict::error("The job reached its own time limit and was not requeued.", found);
    }
    match state {
        Some(SlurmState::Cancelled | SlurmState::Revoked) => match &job.kill_reason {
            Some(why) if wanted => Verdict::error(why, found),
            None if canceled_itself && wanted => Verdict::error("The job canceled itself.", found),
            _ => canceled(),
        },
        // It would have been canceled, or paused, if Slurm had started it.
        Some(SlurmState::LaunchFailed) if !wanted && exit.is_none_or(|exit| exit.code == ENDED_BY_TERM) => {
            canceled()
        }
        Some(SlurmState::Preempted) => Verdict::new(
            Status::Canceled,
            "A job of higher priority took the nodes, and Slurm did not requeue this one.",
        ),
        Some(SlurmState::Timeout) => {
            Verdict::new(Status::Error, "The job reached its Slurm time limit, and Slurm ended it.")
        }
        Some(SlurmState::OutOfMemory) => {
            Verdict::error("The job used more memory than it requested, and Slurm ended it.", found)
        }
        Some(SlurmState::Deadline) => Verdict::new(Status::Error, "Slurm could not meet the job's deadline."),
        Some(state) => failed(state),
        None if exit.is_some() && wanted => failed(&SlurmState::Failed),
        None if wanted => Verdict::new(
            Status::Error,
            "Slurm's queue and accounting no longer list the job, and it left no exit record.",
        ),
        None => Verdict::new(Status::Canceled, "Canceled: Slurm no longer lists the job."),
    }
}

fn failed_message(state: &SlurmState, exit: Option<ExitCode>, reason: &str) -> String {
    let slurm = match reason {
        "None" | "" => state.as_str().to_owned(),
        reason => format!("{} {reason}", state.as_str()),
    };
    match exit {
        Some(ExitCode { code, signal: 0 }) if code != 0 => {
            format!("The job exited with code {code} (Slurm: {slurm}).")
        }
        Some(ExitCode { signal, .. }) if signal != 0 => {
            format!("Signal {signal} ended the job (Slurm: {slurm}).")
        }
        _ => format!("The job failed (Slurm: {slurm})."),
    }
}

fn reported_failure(job: &Job) -> String {
    match job.progress.failure.as_ref().or(job.progress.message.as_ref()) {
        Some(message) => format!("The job reported a failure: {message}"),
        None => "The job reported a failure.".to_owned(),
    }
}

fn no_success(job: &Job, found: &Findings<'_>) -> &'static str {
    match job.progress.final_status() {
        _ if !found.readable => {
            "The job exited with code 0, but its files could not be read to check whether it succeeded."
        }
        _ if found.left_out => {
            "The job exited with code 0, but no readable status.json reports success. One status.json could not be read: \
             the name of its directory contains % or \\ or is not UTF-8, or its size or date is impossible."
        }
        Some(_) => "The job exited with code 0, but it did not report success.",
        None => "The job exited with code 0, but it wrote no status.json.",
    }
}

const SHOWN_LINES: usize = 5;
const SHOWN_CHARS: usize = 200;

/// The sentence, with the last lines of the first log that is not empty: stderr before stdout.
fn with_log(sentence: &str, found: &Findings<'_>) -> String {
    let from = [("main.err", found.err_tail), ("main.out", found.out_tail)];
    let last = |bytes: &[u8]| -> Vec<String> {
        let text = String::from_utf8_lossy(bytes);
        let lines: Vec<&str> = text.lines().map(str::trim_end).filter(|line| !line.is_empty()).collect();
        lines[lines.len().saturating_sub(SHOWN_LINES)..].iter().map(|line| printable(line)).collect()
    };
    match from.map(|(name, bytes)| (name, last(bytes))).into_iter().find(|(_, lines)| !lines.is_empty()) {
        Some((name, lines)) => format!("{sentence} Last lines of {name}:\n{}", lines.join("\n")),
        None => format!("{sentence} Its logs are empty."),
    }
}

/// Log lines are untrusted: without control characters, and cut after 200 characters.
fn printable(line: &str) -> String {
    line.chars().take(SHOWN_CHARS).map(|c| if c.is_control() && c != '\t' { '\u{fffd}' } else { c }).collect()
}
