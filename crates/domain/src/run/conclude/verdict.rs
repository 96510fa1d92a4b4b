//! The verdict: the final status of an ended job, and the message that explains it.

use remote::EndedWith;
use remote::script::{EXIT_LIMIT, EXIT_NO_VARIABLE, EXIT_SETUP, EXIT_WORKDIR};
use slurm::{ExitCode, SlurmState};

use super::{Findings, evidence::has_exit_record, failure::first_error};
use crate::{
    job::{
        failure::Failure,
        status::Status,
        stored::{DesiredState, Job},
    },
    progress::status_file::StatusWord,
    request::{component_settings::ComponentSettings, spec::Work},
    run::{
        evidence::ENDED_BY_TERM,
        log_lines::{last_lines, tells},
        sentence::sentence,
        task::Task,
    },
};

pub(super) struct Verdict {
    pub(super) status: Status,
    /// How the job ended.
    how: String,
    /// The end of the log that may show why.
    log: Option<LogTail>,
    /// The verdict is an error only because the job has not reported its success.
    pub(super) needs_status_line: bool,
}

/// The name of a log, and its last lines.
type LogTail = (String, Vec<String>);

impl Verdict {
    fn new(status: Status, how: impl Into<String>) -> Self {
        Self { status, how: how.into(), log: None, needs_status_line: false }
    }

    pub(super) fn error(how: &str, found: &Findings<'_>) -> Self {
        Self { log: Some(log_tail(found)), ..Self::new(Status::Error, how) }
    }

    /// The job's message. `decision`: why it is not retried, and the line of a log that shows the cause.
    pub(super) fn message(
        &self,
        decision: Option<(&str, Option<&str>)>,
        failure: Option<&Failure>,
    ) -> String {
        let (why, line) = decision.unzip();
        let tail = self.log.as_ref().map_or(&[][..], |(_, lines)| lines);
        // The last lines may show it already.
        let is_hidden = |line: &str| tail.iter().all(|shown| shown.trim() != line);
        let line = line.flatten().filter(|line| is_hidden(line));
        let is_first = |failure: &&Failure| failure.line.as_ref().is_some_and(|first| is_hidden(&first.text));
        let first = first_error(failure.filter(is_first), line);
        let log = match &self.log {
            Some((_, lines)) if lines.is_empty() => Some("Its logs are empty.".to_owned()),
            Some((name, lines)) => Some(format!("Last lines of {name}:\n{}", lines.join("\n"))),
            None => None,
        };
        let quotes = line.is_some() || first.is_some();
        let text: Vec<String> = [
            Some(sentence(&self.how)),
            why.map(str::to_owned),
            line.map(|line| format!("The log says: {line}")),
            first,
        ]
        .into_iter()
        .flatten()
        .collect();
        // A quoted line ends its own line.
        let separator = if quotes { "\n" } else { " " };
        [Some(text.join(" ")), log].into_iter().flatten().collect::<Vec<_>>().join(separator)
    }
}

/// The verdict on a job whose evidence is complete.
pub(super) fn verdict(job: &Job, task: &Task<'_>, canceled_itself: bool, found: &Findings<'_>) -> Verdict {
    let (state, exit) = (job.run.state.as_ref(), job.run.exit);
    let failed = exit.is_some_and(|exit| !exit.is_success());
    // Without a state of Slurm the exit code decides. A controller that was killed may report a failed launch for a job
    // that ran to its end, or a failure because its repetition failed.
    let completed = match state {
        Some(SlurmState::LaunchFailed) | None => exit.is_some(),
        Some(SlurmState::Failed) => has_exit_record(task, found.markers),
        Some(state) => *state == SlurmState::Completed,
    };
    if completed && !failed {
        return success(job, found);
    }
    ended_after_final_status(job, state, exit, found)
        .unwrap_or_else(|| failure(job, state, exit, canceled_itself, found))
}

/// The verdict on a job that exited with code 0.
fn success(job: &Job, found: &Findings<'_>) -> Verdict {
    match (job.run.progress.final_status(), &job.spec.work) {
        (Some(StatusWord::Success), _) => Verdict::new(Status::Done, "Done."),
        (Some(StatusWord::Failure), _) => Verdict::new(Status::Error, reported_failure(job)),
        (
            Some(StatusWord::Started | StatusWord::Running) | None,
            Work::Command { .. } | Work::Components { .. },
        ) => Verdict::new(Status::Done, "Done: the command exited with code 0."),
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
    found: &Findings<'_>,
) -> Option<Verdict> {
    if matches!(job.desired, DesiredState::Cancel | DesiredState::Delete) {
        return None;
    }
    let ended =
        matches!(state, Some(SlurmState::Cancelled | SlurmState::Timeout)) || reached_its_limit(exit, found);
    let lost = state.is_none() && exit.is_none_or(|exit| exit.code == ENDED_BY_TERM);
    match job.run.progress.final_status()? {
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

/// Whether the script has ended the job at the job's own limit.
fn reached_its_limit(exit: Option<ExitCode>, found: &Findings<'_>) -> bool {
    found.markers.limited && exit.is_some_and(|exit| exit.code == EXIT_LIMIT)
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
        let reason = job.run.reason.as_deref().unwrap_or("None");
        let message = own_failure(job, exit).map(str::to_owned);
        // A program may have written that record.
        let ended_with = found.ended_with.filter(|_| found.markers.exit.is_some());
        let message = message.or_else(|| Some(component_message(ended_with?, state, reason)));
        Verdict::error(&message.unwrap_or_else(|| failed_message(state, exit, reason)), found)
    };
    if reached_its_limit(exit, found) {
        return Verdict::error("The job reached its own time limit and was not requeued.", found);
    }
    match state {
        Some(SlurmState::Cancelled | SlurmState::Revoked) => match &job.run.kill_reason {
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

/// Why a task did not start the job's program. A program may return the same codes, so the job must have what failed.
fn own_failure(job: &Job, exit: Option<ExitCode>) -> Option<&'static str> {
    let settings = &job.spec.program;
    let has_own =
        |has: fn(&ComponentSettings) -> bool| job.spec.components().iter().any(|part| has(&part.own));
    match exit? {
        ExitCode { code: EXIT_SETUP, signal: 0 } if !settings.setup.is_empty() => {
            Some("A line of the job's setup failed, so its program did not start.")
        }
        ExitCode { code: EXIT_WORKDIR, signal: 0 } if settings.workdir.is_some() => {
            Some("The job's working directory could not be entered, so its program did not start.")
        }
        ExitCode { code: EXIT_WORKDIR, signal: 0 } if has_own(|own| own.workdir.is_some()) => Some(
            "The working directory of a step or a service could not be entered, so its program did not start.",
        ),
        ExitCode { code: EXIT_NO_VARIABLE, signal: 0 } if has_own(|own| !own.node_env.is_empty()) => Some(
            "A variable that the job takes from the node is not set there, so its programs did not start.",
        ),
        _ => None,
    }
}

/// The state and the reason, as Slurm writes them.
fn in_slurm(state: &SlurmState, reason: &str) -> String {
    match reason {
        "None" | "" => state.as_str().to_owned(),
        reason => format!("{} {reason}", state.as_str()),
    }
}

fn component_message(ended: &EndedWith, state: &SlurmState, reason: &str) -> String {
    let EndedWith { is_service, name, what, .. } = ended;
    let kind = if *is_service { "service" } else { "step" };
    format!("The {kind} {name} {what} (Slurm: {}).", in_slurm(state, reason))
}

fn failed_message(state: &SlurmState, exit: Option<ExitCode>, reason: &str) -> String {
    let slurm = in_slurm(state, reason);
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
    match job.run.progress.failure.as_ref().or(job.run.progress.message.as_ref()) {
        Some(message) => format!("The job reported a failure: {message}"),
        None => "The job reported a failure.".to_owned(),
    }
}

fn no_success(job: &Job, found: &Findings<'_>) -> &'static str {
    match job.run.progress.final_status() {
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

/// The end of the first log that says something: of the component that ended the job, then stderr before stdout.
fn log_tail(found: &Findings<'_>) -> LogTail {
    let own = found.ended_with.map(|ended| {
        let log = |stream| format!("{}/0.{stream}", ended.name);
        [(log("err"), &ended.err_tail[..]), (log("out"), &ended.out_tail[..])]
    });
    let logs = [("main.err".to_owned(), found.err_tail), ("main.out".to_owned(), found.out_tail)];
    let logs: Vec<_> = own.into_iter().flatten().chain(logs).collect();
    let said = logs.iter().find(|(_, log)| tells(log));
    let log = said.or_else(|| logs.iter().find(|(_, log)| !log.trim_ascii().is_empty()));
    log.map(|(name, log)| (name.clone(), last_lines(log))).unwrap_or_default()
}
