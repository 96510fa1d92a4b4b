//! Counts the findings of all jobs.

use crate::{evidence::Evidence, truth::Finding};

/// The result of a run.
#[derive(Debug, Default)]
pub(crate) struct Audited {
    pub(crate) jobs: usize,
    pub(crate) attempts: usize,
    pub(crate) executions: usize,
    pub(crate) duplicates: Vec<String>,
    pub(crate) lost: Vec<String>,
    pub(crate) wrong: Vec<String>,
    pub(crate) stuck: Vec<String>,
    pub(crate) orphans: Vec<String>,
    pub(crate) given_up: Vec<String>,
    pub(crate) second_copies: usize,
    /// The longest and the median time from a job's end on the cluster to its final status in the service.
    pub(crate) longest_delay: f64,
    pub(crate) median_delay: f64,
}

pub(crate) fn audit(evidence: &Evidence) -> Audited {
    let mut audited = Audited { jobs: evidence.cases.len(), ..Audited::default() };
    let mut times = Vec::new();
    for (id, case) in &evidence.cases {
        audited.attempts += case.reported.as_ref().map_or(0, |reported| reported.attempts.len());
        audited.executions += case.runs.len();
        times.extend(case.detection_delay());
        for finding in case.judge() {
            let (list, text) = match finding {
                Finding::Duplicate(text) => (&mut audited.duplicates, text),
                Finding::Lost(text) => (&mut audited.lost, text),
                Finding::Wrong(text) => (&mut audited.wrong, text),
                Finding::Stuck(text) => (&mut audited.stuck, text),
                Finding::Orphan(text) => (&mut audited.orphans, text),
                Finding::GivenUp(text) => (&mut audited.given_up, text),
                Finding::SecondCopy(_) => {
                    audited.second_copies += 1;
                    continue;
                }
            };
            list.push(format!("{id} ({}): {text}", case.kind.name()));
        }
    }
    audited.orphans.extend(evidence.unknown_jobs.iter().cloned());
    // All requests are valid, so a refused one is a lost job.
    audited.lost.extend(evidence.refused.iter().cloned());
    times.sort_by(f64::total_cmp);
    audited.longest_delay = times.last().copied().unwrap_or_default();
    audited.median_delay = times.get(times.len() / 2).copied().unwrap_or_default();
    audited
}
