//! The verdicts on all jobs, counted.

use crate::{evidence::Evidence, truth::Finding};

/// What a run came to.
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
    /// The longest time from an end on the cluster to the same in the service, and the middle one.
    pub(crate) longest_to_truth: f64,
    pub(crate) median_to_truth: f64,
}

pub(crate) fn audit(evidence: &Evidence) -> Audited {
    let mut audited = Audited { jobs: evidence.cases.len(), ..Audited::default() };
    let mut times = Vec::new();
    for (id, case) in &evidence.cases {
        audited.attempts += case.told.as_ref().map_or(0, |told| told.attempts.len());
        audited.executions += case.runs.len();
        times.extend(case.seconds_to_truth());
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
    audited.orphans.extend(evidence.strangers.iter().cloned());
    // None of the requests deserves it, so the job behind it was lost.
    audited.lost.extend(evidence.refused.iter().cloned());
    times.sort_by(f64::total_cmp);
    audited.longest_to_truth = times.last().copied().unwrap_or_default();
    audited.median_to_truth = times.get(times.len() / 2).copied().unwrap_or_default();
    audited
}
