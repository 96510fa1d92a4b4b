//! The marker files that a batch script writes to its state directory: they outlive the job's row in Slurm.

use std::collections::HashMap;

use crate::{ParseError, answer::Line};
use slurm::SlurmJobId;

/// The markers of one attempt. A marker that is missing or malformed is `None`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Markers {
    /// How the batch script ended.
    pub exit: Option<ExitRecord>,
    /// The batch script began.
    pub started: Option<StartedMarker>,
    /// The Slurm job that holds the attempt: the target of the symbolic link `run`.
    pub run_claim: Option<SlurmJobId>,
    /// The batch script requeued the job at its own time limit. Such a run writes no exit record.
    pub requeued: Option<RequeuedMarker>,
    /// Whether the program of the newest run has begun on a node: of several the one that ended the job, or any if that is not
    /// known. Only `conclude` reads this.
    pub begun: bool,
    /// Whether the newest run got the warning before a time limit.
    pub warned: bool,
    /// Whether the newest run reached the job's own time limit.
    pub limited: bool,
    /// A program of the newest run called scancel in a way that may have canceled the job itself.
    pub self_canceled: Option<SelfCancelMarker>,
}

/// `exit`: written atomically when the batch script ends by itself. Absent after SIGKILL or a node failure.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ExitRecord {
    /// The job that wrote it.
    pub slurm_id: SlurmJobId,
    /// How often Slurm had requeued the job (`SLURM_RESTART_COUNT`).
    pub restart: u32,
    /// The exit code of the batch script.
    pub code: u8,
    /// When, in seconds since 1970 by the clock of the compute node.
    pub at: i64,
}

/// `started`: written atomically after the batch script has its claim.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StartedMarker {
    /// The job that wrote it.
    pub slurm_id: SlurmJobId,
    /// How often Slurm had requeued the job (`SLURM_RESTART_COUNT`).
    pub restart: u32,
    /// When, in seconds since 1970 by the clock of the compute node.
    pub at: i64,
    /// The node of the batch script by its own name; empty if that is not a plain name.
    pub hostname: String,
}

/// `requeued`: written atomically before the batch script requeues the job.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RequeuedMarker {
    /// The job that wrote it.
    pub slurm_id: SlurmJobId,
    /// How often Slurm had requeued the job before (`SLURM_RESTART_COUNT`), for any reason.
    pub restart: u32,
    /// How often the job has requeued itself.
    pub times: u32,
    /// When, in seconds since 1970 by the clock of the compute node.
    pub at: i64,
}

/// `self_canceled`: written atomically before scancel is called. The call may be for other jobs, so the marker explains only an
/// end soon after it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SelfCancelMarker {
    /// The job that wrote it.
    pub slurm_id: SlurmJobId,
    /// When, in seconds since 1970 by the clock of the node.
    pub at: i64,
}

/// Collects markers by the index of their job from the lines `CLAIM` and `MARK`.
#[derive(Default)]
pub(super) struct MarkerReader {
    marks: HashMap<usize, Markers>,
}

impl MarkerReader {
    pub(super) fn claim(&mut self, mut line: Line<'_>, count: usize) -> Result<(), ParseError> {
        let index = line.index(count)?;
        self.marks.entry(index).or_default().run_claim = line.rest().parse().ok();
        Ok(())
    }

    /// The job can write these files too, so malformed text is not an error.
    pub(super) fn mark(&mut self, mut line: Line<'_>, count: usize) -> Result<(), ParseError> {
        let marks = self.marks.entry(line.index(count)?).or_default();
        match line.word()? {
            b"exit" => marks.exit = exit_marker(&line.rest()),
            b"started" => marks.started = started_marker(&line.rest()),
            b"requeued" => marks.requeued = requeued_marker(&line.rest()),
            // A new run removes these, so they belong to the run of the other markers.
            b"begun" => marks.begun = true,
            b"warned" => marks.warned = true,
            b"limited" => marks.limited = true,
            b"self_canceled" => marks.self_canceled = self_cancel_marker(&line.rest()),
            _ => return Err(line.malformed("an unknown marker")),
        }
        Ok(())
    }

    pub(super) fn take(&mut self, index: usize) -> Option<Markers> {
        self.marks.remove(&index)
    }
}

/// The words of a marker, if it has so many.
fn words<const N: usize>(text: &str) -> Option<[&str; N]> {
    text.split(' ').collect::<Vec<_>>().try_into().ok()
}

fn self_cancel_marker(text: &str) -> Option<SelfCancelMarker> {
    let [slurm_id, restart, at] = words(text)?;
    restart.parse::<u32>().ok()?;
    Some(SelfCancelMarker { slurm_id: slurm_id.parse().ok()?, at: at.parse().ok()? })
}

fn exit_marker(text: &str) -> Option<ExitRecord> {
    let [slurm_id, restart, code, at] = words(text)?;
    let (slurm_id, restart) = (slurm_id.parse().ok()?, restart.parse().ok()?);
    Some(ExitRecord { slurm_id, restart, code: code.parse().ok()?, at: at.parse().ok()? })
}

fn requeued_marker(text: &str) -> Option<RequeuedMarker> {
    let [slurm_id, restart, times, at] = words(text)?;
    let (slurm_id, restart) = (slurm_id.parse().ok()?, restart.parse().ok()?);
    Some(RequeuedMarker { slurm_id, restart, times: times.parse().ok()?, at: at.parse().ok()? })
}

fn started_marker(text: &str) -> Option<StartedMarker> {
    let mut words = text.split(' ');
    let (slurm_id, restart, at) =
        (words.next()?.parse().ok()?, words.next()?.parse().ok()?, words.next()?.parse().ok()?);
    let plain = |name: &&str| {
        name.len() <= 255 && name.bytes().all(|b| b.is_ascii_alphanumeric() || b".-_".contains(&b))
    };
    let hostname = words.next().filter(plain).unwrap_or_default().to_owned();
    Some(StartedMarker { slurm_id, restart, at, hostname })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn an_exit_mark_is_read() {
        let marker = exit_marker("42 1 137 1700000000").unwrap();
        assert_eq!(
            (marker.slurm_id.get(), marker.restart, marker.code, marker.at),
            (42, 1, 137, 1_700_000_000)
        );
    }

    #[test]
    fn a_requeue_mark_is_read() {
        let marker = requeued_marker("42 3 2 1700000000").unwrap();
        assert_eq!(
            (marker.slurm_id.get(), marker.restart, marker.times, marker.at),
            (42, 3, 2, 1_700_000_000)
        );
        assert_eq!(requeued_marker("42 3 2"), None);
    }

    #[test]
    fn a_mark_of_a_job_that_cancels_itself_is_read() {
        let marker = self_cancel_marker("42 3 1700000000").unwrap();
        assert_eq!((marker.slurm_id.get(), marker.at), (42, 1_700_000_000));
        for text in ["", "42", "42 3", "42 x 1", "42 3 1 1"] {
            assert_eq!(self_cancel_marker(text), None, "{text:?}");
        }
    }

    #[test]
    fn a_mark_that_was_cut_or_forged_is_none() {
        for text in ["", "42", "42 1 137", "42 1 256 1", "0 0 0 0", "42 1 1 1 1", "42  1 1 1", "x 1 1 1"] {
            assert_eq!(exit_marker(text), None, "{text:?}");
        }
        assert_eq!(started_marker("42 0"), None);
    }

    #[test]
    fn a_host_name_that_is_not_plain_is_left_out() {
        assert_eq!(started_marker("42 0 17 node01").unwrap().hostname, "node01");
        assert_eq!(started_marker("42 0 17 \u{1b}[31m").unwrap().hostname, "");
    }

    proptest! {
        #[test]
        fn no_text_makes_the_readers_panic(text in any::<String>()) {
            let _ = (exit_marker(&text), started_marker(&text), requeued_marker(&text), self_cancel_marker(&text));
        }
    }
}
