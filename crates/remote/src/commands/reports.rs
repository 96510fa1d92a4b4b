//! What running jobs report of themselves: which of their services are not ready, and how far their programs have come.

use std::collections::HashMap;

use super::usage::UsageMarker;
use crate::{ParseError, answer::Line};
use slurm::{ComponentName, RemotePath, SlurmJobId};

/// The files of a running job that a poll reads. Of each the first 400 bytes count, if nothing else is said.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ReportFiles {
    /// Whether it has services with rules, so that its batch script keeps the marker `services`.
    pub services: bool,
    /// A file in which its program writes how far it has come.
    pub progress: Option<RemotePath>,
    /// The bytes that count of the marker `usage`, if it is due.
    pub usage: Option<usize>,
}

/// What was read of them. A file that is missing, unreadable or malformed is `None`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Reports {
    /// The services that are not ready.
    pub services: Option<ServicesMarker>,
    /// The text of the progress file, in one line.
    pub progress: Option<String>,
    /// What it uses.
    pub usage: Option<UsageMarker>,
}

/// `services`: written atomically by the batch script when a state changes, and every ten seconds while one is not ready.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServicesMarker {
    /// The job that wrote it.
    pub slurm_id: SlurmJobId,
    /// When, in seconds since 1970 by the clock of the compute node.
    pub at: i64,
    /// The services that are not ready, in the order of their starts.
    pub waiting: Vec<WaitingService>,
}

/// A service that is not ready.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WaitingService {
    /// Its name.
    pub name: ComponentName,
    /// What it does.
    pub state: WaitingState,
}

/// Why a service is not ready.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WaitingState {
    /// It loads.
    Starting {
        /// Since when, in seconds since 1970 by the clock of the compute node.
        since: i64,
        /// Within how many seconds it has to be ready.
        limit: u32,
    },
    /// It was ready, and does not answer.
    Failing {
        /// So many probes in a row.
        missed: u32,
        /// After so many it is ended.
        most: u32,
    },
    /// It is ended, and starts again.
    Ending,
}

/// Collects reports by the index of their job from the lines `SERVICES` and `PROGRESS`.
#[derive(Default)]
pub(super) struct ReportReader {
    pub(super) reports: HashMap<usize, Reports>,
}

impl ReportReader {
    /// The job can write this file too, so malformed text is not an error.
    pub(super) fn services(&mut self, mut line: Line<'_>, count: usize) -> Result<(), ParseError> {
        let reports = self.reports.entry(line.index(count)?).or_default();
        reports.services = services_marker(&line.rest());
        Ok(())
    }

    /// So may this one.
    pub(super) fn usage(&mut self, mut line: Line<'_>, count: usize) -> Result<(), ParseError> {
        let reports = self.reports.entry(line.index(count)?).or_default();
        reports.usage = UsageMarker::read(&line.rest());
        Ok(())
    }

    pub(super) fn progress(&mut self, mut line: Line<'_>, count: usize) -> Result<(), ParseError> {
        let reports = self.reports.entry(line.index(count)?).or_default();
        reports.progress = Some(line.rest().into_owned());
        Ok(())
    }
}

/// `JOB RESTART TIME`, and for each service ` NAME STATE NUMBER NUMBER;`. An entry without its semicolon was cut.
fn services_marker(text: &str) -> Option<ServicesMarker> {
    let (head, entries) = match text.match_indices(' ').nth(2) {
        Some((at, _)) => text.split_at(at),
        None => (text, ""),
    };
    let mut words = head.split(' ');
    let (slurm_id, restart, at) = (words.next()?, words.next()?, words.next()?);
    restart.parse::<u32>().ok()?;
    let whole = entries.split_inclusive(';').filter_map(|entry| entry.strip_suffix(';'));
    Some(ServicesMarker {
        slurm_id: slurm_id.parse().ok()?,
        at: at.parse().ok()?,
        waiting: whole.filter_map(waiting_service).collect(),
    })
}

fn waiting_service(text: &str) -> Option<WaitingService> {
    let words: [&str; 4] = text.trim_start().split(' ').collect::<Vec<_>>().try_into().ok()?;
    let [name, state, first, second] = words;
    let state = match state {
        "starting" => WaitingState::Starting { since: first.parse().ok()?, limit: second.parse().ok()? },
        "failing" => WaitingState::Failing { missed: first.parse().ok()?, most: second.parse().ok()? },
        "ending" => WaitingState::Ending,
        _ => return None,
    };
    Some(WaitingService { name: name.parse().ok()?, state })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_marker_tells_which_services_are_not_ready() {
        let text = "42 0 1000 model starting 786 3600;judge failing 2 3;balancer ending 0 0;cut starting 9";
        let marker = services_marker(text).unwrap();
        assert_eq!((marker.slurm_id.get(), marker.at), (42, 1000));
        let states: Vec<_> = marker.waiting.iter().map(|one| (one.name.as_str(), one.state)).collect();
        assert_eq!(
            states,
            [
                ("model", WaitingState::Starting { since: 786, limit: 3600 }),
                ("judge", WaitingState::Failing { missed: 2, most: 3 }),
                ("balancer", WaitingState::Ending),
            ]
        );
        assert_eq!(services_marker("42 0 1000").unwrap().waiting, []);
    }

    #[test]
    fn what_a_job_has_written_there_itself_is_left_out() {
        for text in ["", "42", "42 0", "x 0 1000", "42 0 soon", "42 - 1000"] {
            assert_eq!(services_marker(text), None, "{text:?}");
        }
        let text = "42 0 1000 ../x starting 1 2;model sleeping 1 2;model starting 1;model starting x 2;; ;";
        assert_eq!(services_marker(text).unwrap().waiting, []);
    }
}
