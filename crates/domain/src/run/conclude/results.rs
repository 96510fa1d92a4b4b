//! What the results of a job decide about its end.

use super::Findings;
use crate::job::{results::TaskResult, stored::Job};

/// The results of a job: what was found, or that they could not be read in all the time there was.
pub(super) fn results_of(job: &Job, found: &Findings<'_>) -> Vec<TaskResult> {
    let unread = || {
        let rules = job.spec.results.iter();
        rules.map(|rule| TaskResult::lacking(rule, "the job's files could not be read")).collect()
    };
    found.results.map_or_else(unread, <[_]>::to_vec)
}

/// Whether a result may still become visible.
pub(super) fn may_follow(results: &[TaskResult]) -> bool {
    results.iter().any(|result| result.may_follow)
}

/// Why a job that succeeded ends in an error: the first required result that it lacks.
pub(super) fn lack(job: &Job, results: &[TaskResult]) -> Option<String> {
    let lacking = |(_, result): &(_, &TaskResult)| result.problem.is_some();
    let mut required = job.spec.results.iter().zip(results).filter(|(rule, _)| rule.required);
    let (rule, result) = required.find(lacking)?;
    let problem = result.problem.as_deref().unwrap_or_default();
    Some(format!("The job succeeded, but its required result `{}` is missing: {problem}.", rule.name))
}
