//! What is said of an end: a sentence, and the last lines of the log.

use slurm::{ExitCode, SlurmState};

use super::Findings;
use crate::job::stored::Job;

pub(super) fn failed_message(state: &SlurmState, exit: Option<ExitCode>, reason: &str) -> String {
    let slurm = match reason {
        "None" | "" => state.as_str().to_owned(),
        reason => format!("{} {reason}", state.as_str()),
    };
    match exit {
        Some(ExitCode { code, signal: 0 }) if code != 0 => {
            format!("The job's program exited with code {code} (Slurm: {slurm}).")
        }
        Some(ExitCode { signal, .. }) if signal != 0 => {
            format!("The job's program was ended by signal {signal} (Slurm: {slurm}).")
        }
        _ => format!("The job failed (Slurm: {slurm})."),
    }
}

pub(super) fn said_failure(job: &Job) -> String {
    match &job.progress.message {
        Some(message) => format!("The job reported a failure: {message}"),
        None => "The job reported a failure.".to_owned(),
    }
}

pub(super) fn silent(job: &Job, found: &Findings<'_>) -> String {
    let text = match job.progress.final_status() {
        _ if !found.readable => {
            "The job ended with code 0, but its files could not be read, so nobody knows whether it succeeded."
        }
        _ if found.left_out => {
            "The job ended with code 0, but never reported success in a status.json that can be read: it has one in a \
             directory whose name holds % or \\ or is not UTF-8, or one of an impossible size or date."
        }
        Some(_) => "The job ended with code 0 but never reported success.",
        None => "The job ended with code 0 but wrote no status.json.",
    };
    with_log(text, found)
}

const SHOWN_LINES: usize = 5;
const SHOWN_CHARS: usize = 200;

/// The sentence, and the last lines of the log that has any: stderr before stdout.
pub(super) fn with_log(sentence: &str, found: &Findings<'_>) -> String {
    let from = [("main.err", found.err_tail), ("main.out", found.out_tail)];
    let last = |bytes: &[u8]| -> Vec<String> {
        let text = String::from_utf8_lossy(bytes);
        let lines: Vec<&str> = text.lines().map(str::trim_end).filter(|line| !line.is_empty()).collect();
        lines[lines.len().saturating_sub(SHOWN_LINES)..].iter().map(|line| printable(line)).collect()
    };
    match from.map(|(name, bytes)| (name, last(bytes))).into_iter().find(|(_, lines)| !lines.is_empty()) {
        Some((name, lines)) => format!("{sentence} Last lines of {name}:\n{}", lines.join("\n")),
        None => format!("{sentence} It left no log."),
    }
}

/// A log line is hostile: no control characters reach a terminal, and no line fills a page.
fn printable(line: &str) -> String {
    line.chars().take(SHOWN_CHARS).map(|c| if c.is_control() && c != '\t' { '\u{fffd}' } else { c }).collect()
}
