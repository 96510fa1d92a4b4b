//! The status of a job on one line.

use domain::Status;
use serde::Deserialize;

use super::text::{colored, headline, on_one_line};

/// The parts of the status document that the client shows.
#[derive(Debug, Clone, Deserialize)]
pub(crate) struct StatusDocument {
    pub(crate) status: Status,
    #[serde(default)]
    phase: String,
    #[serde(default)]
    message: String,
    slurm_job_id: Option<String>,
    #[serde(default)]
    progress: Progress,
    #[serde(default)]
    stale: bool,
    #[serde(default)]
    pending: Option<Pending>,
}

#[derive(Debug, Clone, Deserialize)]
struct Pending {
    #[serde(default)]
    estimated_start_on: Option<String>,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub(crate) struct Progress {
    epoch: Option<u64>,
    max_epoch: Option<u64>,
    percent: Option<u8>,
    eta: Option<String>,
}

impl StatusDocument {
    /// The exit code of `--watch`; none until the job has ended.
    pub(crate) fn exit_code(&self) -> Option<u8> {
        exit_code(self.status)
    }

    /// `status phase [#####-----] 3/6 50% eta … message`, without the parts that are unknown.
    pub(crate) fn line(&self) -> String {
        let mut parts = vec![self.status.to_string()];
        // A phase such as "ended" adds nothing to the status.
        if self.exit_code().is_none() && !self.phase.eq_ignore_ascii_case(&self.status.to_string()) {
            parts.push(self.phase.clone());
        }
        if let Some(id) = &self.slurm_job_id {
            parts.push(format!("({id})"));
        }
        parts.extend(self.progress.text());
        parts.push(headline(&self.message).to_owned());
        if let Some(start) = self.pending.as_ref().and_then(|pending| pending.estimated_start_on.as_ref()) {
            parts.push(format!("Estimated start: {start}."));
        }
        if self.stale {
            parts.push("(the cluster does not respond; this may be outdated)".to_owned());
        }
        parts.retain(|part| !part.is_empty());
        on_one_line(&parts.join(" "))
    }

    /// The same with the status in its colour.
    pub(crate) fn colored_line(&self) -> String {
        let status = self.status.to_string();
        let line = self.line();
        line.strip_prefix(&status).map_or_else(|| line.clone(), |rest| colored(&status) + rest)
    }
}

/// The exit code of `--watch`; none for a status that is not final.
pub(super) const fn exit_code(status: Status) -> Option<u8> {
    match status {
        Status::Done => Some(0),
        Status::Error => Some(1),
        Status::Canceled => Some(2),
        _ => None,
    }
}

const CELLS: usize = 10;

impl Progress {
    /// `[#####-----] 3/6 50% eta …`; none without progress.
    pub(crate) fn text(&self) -> Option<String> {
        let percent = self.percent.map(|percent| percent.min(100));
        let mut parts = Vec::new();
        if let Some(percent) = percent {
            // Rounded down, so that the bar is full only at 100%.
            let filled = usize::from(percent) * CELLS / 100;
            parts.push(format!("[{}{}]", "#".repeat(filled), "-".repeat(CELLS - filled)));
        }
        match (self.epoch, self.max_epoch) {
            (Some(epoch), Some(of)) => parts.push(format!("{epoch}/{of}")),
            (Some(epoch), None) => parts.push(format!("epoch {epoch}")),
            (None, _) => {}
        }
        parts.extend(percent.map(|percent| format!("{percent}%")));
        parts.extend(self.eta.as_ref().filter(|eta| !eta.is_empty()).map(|eta| format!("eta {eta}")));
        (!parts.is_empty()).then(|| parts.join(" "))
    }
}

/// The line, truncated to the terminal's width, with the escape sequence that overwrites the previous one.
pub(crate) fn live_line(line: &str, width: usize) -> String {
    format!("\r\u{1b}[2K{}", cut(line, width))
}

/// The line, truncated to the terminal's width.
pub(super) fn cut(line: &str, width: usize) -> String {
    let room = width.saturating_sub(1).max(20);
    if line.chars().count() > room {
        line.chars().take(room - 1).chain(['…']).collect()
    } else {
        line.to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn document(json: &str) -> StatusDocument {
        serde_json::from_str(json).unwrap()
    }

    #[test]
    fn a_running_job_shows_its_progress_bar() {
        let job = document(
            r#"{"id": "01a21687-3d58-727b-af43-d5f40bfcf423", "status": "Running", "phase": "running", "message": "Epoch 3 of 6 on n1.",
                "slurm_job_id": "4711", "progress": {"epoch": 3, "max_epoch": 6, "percent": 50, "eta": "0:12:00"}}"#,
        );
        assert_eq!(job.line(), "Running (4711) [#####-----] 3/6 50% eta 0:12:00 Epoch 3 of 6 on n1.");
        assert_eq!(job.exit_code(), None);
    }

    #[test]
    fn a_pending_job_shows_its_phase_and_reason() {
        let job = document(
            r#"{"id": "01a21687-3d58-727b-af43-d5f40bfcf423", "status": "Pending", "phase": "in_queue", "message": "Waiting: Priority.", "stale": true}"#,
        );
        assert_eq!(
            job.line(),
            "Pending in_queue Waiting: Priority. (the cluster does not respond; this may be outdated)"
        );
    }

    #[test]
    fn the_final_status_decides_the_exit_code() {
        for (status, code) in
            [("Done", Some(0)), ("Error", Some(1)), ("Canceled", Some(2)), ("Canceling", None)]
        {
            let job = document(&format!(
                r#"{{"id": "01a21687-3d58-727b-af43-d5f40bfcf423", "status": "{status}", "phase": "ended"}}"#
            ));
            assert_eq!(job.exit_code(), code, "{status}");
        }
    }

    #[test]
    fn the_progress_bar_is_full_only_at_100_percent() {
        let bar = |percent| Progress { percent: Some(percent), ..Progress::default() }.text().unwrap();
        assert_eq!(bar(0), "[----------] 0%");
        assert_eq!(bar(99), "[#########-] 99%");
        assert_eq!(bar(100), "[##########] 100%");
        assert_eq!(bar(250), "[##########] 100%");
        assert_eq!(Progress::default().text(), None);
    }

    #[test]
    fn a_live_line_never_wraps() {
        let line = live_line(&"ä".repeat(300), 80);
        assert_eq!(line.trim_start_matches("\r\u{1b}[2K").chars().count(), 79);
        assert!(line.ends_with('…'));
        assert_eq!(live_line("short", 80), "\r\u{1b}[2Kshort");
    }
}
