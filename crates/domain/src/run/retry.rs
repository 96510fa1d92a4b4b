//! When an attempt that failed is made again, where it is kept away from, and how long it waits.

use std::collections::BTreeSet;

use chrono::TimeDelta;
use serde::{Deserialize, Serialize};
use slurm::{NodeName, SlurmJobId};

use crate::{
    clock::Timestamp,
    job::{id::JobId, stored::Job},
    run::{
        diagnosis::{Cause, Diagnosis},
        exclusion::{excluded, names},
    },
};

/// How failed attempts are made again.
#[derive(Debug, Clone, Copy)]
pub struct RetryTerms {
    /// The wait before the first of them; it doubles with each.
    pub first_wait: TimeDelta,
    pub longest_wait: TimeDelta,
    /// How long a node that has failed is kept away from.
    pub exclude_for: TimeDelta,
}

impl Default for RetryTerms {
    fn default() -> Self {
        Self {
            first_wait: TimeDelta::seconds(15),
            longest_wait: TimeDelta::minutes(10),
            exclude_for: TimeDelta::hours(24),
        }
    }
}

/// An attempt that failed for a reason of the infrastructure.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PastFailure {
    pub attempt: u32,
    pub slurm_id: Option<SlurmJobId>,
    /// The rule that told it, or Slurm's state: two failures with one signature are one fault.
    pub signature: String,
    /// The nodes that it is laid to; empty when nobody can say which of several it was.
    pub nodes: Vec<NodeName>,
    pub at: Timestamp,
    /// It is no reason any more to keep away from them.
    #[serde(default)]
    pub allowed_again: bool,
}

/// Whether the job is sent again.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum RetryDecision {
    Yes { wait: TimeDelta, why: String },
    No { why: String },
}

/// One fault on so many different nodes is the job's own, whatever it looks like.
const SAME_FAULT_NODES: usize = 3;

/// Decides about another attempt after one that failed for `diagnosis`; `job.failures` has it already if it counts. `spare`
/// is how many nodes it can do without, if that is known.
pub(crate) fn decide_retry(
    job: &Job,
    diagnosis: Option<&Diagnosis>,
    terms: &RetryTerms,
    spare: Option<usize>,
    now: Timestamp,
) -> RetryDecision {
    let no = |why: String| RetryDecision::No { why };
    let Some(found) = diagnosis else {
        return no("Not tried again: nothing says that the infrastructure was at fault.".to_owned());
    };
    if found.cause == Cause::User {
        return no(format!("Not tried again, because {}.", found.why));
    }
    let nodes: BTreeSet<&NodeName> = job
        .failures
        .iter()
        .filter(|past| past.signature == found.signature)
        .flat_map(|past| &past.nodes)
        .collect();
    if nodes.len() >= SAME_FAULT_NODES {
        let names: Vec<&str> = nodes.iter().map(|node| node.as_str()).collect();
        return no(format!(
            "Not tried again: the same fault ({}) came up on {} different nodes ({}), so it is not theirs.",
            found.signature,
            names.len(),
            names.join(", ")
        ));
    }
    let budget = job.spec.max_retries;
    if job.retry_count >= budget {
        return no(format!("Not tried again: {} of {budget} retries are used up.", job.retry_count));
    }
    let wait = wait(job.id, job.retry_count, terms);
    let kept_away = match excluded(job, terms, spare, now).as_slice() {
        [] => String::new(),
        nodes => format!(", without {}", names(nodes)),
    };
    let retry = job.retry_count + 1;
    let why = format!(
        "Tried again in {} s{kept_away} (retry {retry} of {budget}), because {}.",
        wait.num_seconds(),
        found.why
    );
    RetryDecision::Yes { wait, why }
}

/// Doubles with each retry, and differs by up to a fifth from job to job, so that a hundred jobs that one failure hit
/// do not come back at one moment.
fn wait(job: JobId, retries: u32, terms: &RetryTerms) -> TimeDelta {
    let doubled = terms.first_wait.num_milliseconds().saturating_mul(1_i64 << retries.min(20));
    let bounded = doubled.min(terms.longest_wait.num_milliseconds());
    let spread = i64::try_from(job.get().as_u128() % 401).unwrap_or(200) - 200;
    TimeDelta::milliseconds(bounded + bounded * spread / 1000)
}

#[cfg(test)]
mod tests {
    use chrono::DateTime;

    use super::*;
    use crate::fixtures::submitted_job;

    const T0: Timestamp = DateTime::UNIX_EPOCH;

    fn broken() -> Diagnosis {
        Diagnosis {
            cause: Cause::Infrastructure,
            signature: "node_fail".to_owned(),
            why: "a node of the job failed".to_owned(),
            line: None,
            nodes: vec!["node01".parse().unwrap()],
        }
    }

    fn failed_on(names: &[&str]) -> Job {
        let mut job = submitted_job();
        for (no, name) in (1..).zip(names) {
            job.failures.push(PastFailure {
                attempt: no,
                slurm_id: None,
                signature: "node_fail".to_owned(),
                nodes: vec![name.parse().unwrap()],
                at: T0,
                allowed_again: false,
            });
        }
        job
    }

    fn decide(job: &Job, found: Option<&Diagnosis>) -> RetryDecision {
        decide_retry(job, found, &RetryTerms::default(), None, T0)
    }

    #[test]
    fn a_failed_node_is_left_out_and_the_sentence_says_so() {
        let why = match decide(&failed_on(&["node01"]), Some(&broken())) {
            RetryDecision::Yes { why, .. } => why,
            other @ RetryDecision::No { .. } => panic!("{other:?}"),
        };
        assert_eq!(
            why,
            "Tried again in 12 s, without node01 (retry 1 of 10), because a node of the job failed."
        );
    }

    #[test]
    fn a_failed_node_that_cannot_be_spared_is_not_left_out() {
        let again =
            decide_retry(&failed_on(&["node01"]), Some(&broken()), &RetryTerms::default(), Some(0), T0);
        assert!(
            matches!(again, RetryDecision::Yes { why, .. } if why.starts_with("Tried again in 12 s (retry 1 of 10)"))
        );
    }

    #[test]
    fn a_fault_of_the_job_is_not_tried_again() {
        let found = Diagnosis { cause: Cause::User, why: "its batch is too large".to_owned(), ..broken() };
        let why = "Not tried again, because its batch is too large.".to_owned();
        assert_eq!(decide(&failed_on(&[]), Some(&found)), RetryDecision::No { why });
    }

    #[test]
    fn what_nobody_understands_is_not_tried_again() {
        assert!(matches!(decide(&failed_on(&[]), None), RetryDecision::No { .. }));
    }

    #[test]
    fn the_same_fault_on_three_nodes_ends_the_tries() {
        assert!(matches!(decide(&failed_on(&["a", "b", "b"]), Some(&broken())), RetryDecision::Yes { .. }));
        let stopped = decide(&failed_on(&["a", "b", "c"]), Some(&broken()));
        assert!(matches!(stopped, RetryDecision::No { why } if why.contains("3 different nodes (a, b, c)")));
    }

    #[test]
    fn different_faults_on_three_nodes_are_not_one_fault_of_the_job() {
        let mut job = failed_on(&["a", "b", "c"]);
        "xid".clone_into(&mut job.failures[0].signature);
        assert!(matches!(decide(&job, Some(&broken())), RetryDecision::Yes { .. }));
    }

    #[test]
    fn the_budget_ends_the_tries() {
        let mut job = failed_on(&["a"]);
        job.retry_count = job.spec.max_retries;
        assert!(
            matches!(decide(&job, Some(&broken())), RetryDecision::No { why } if why.contains("10 of 10 retries"))
        );
    }

    #[test]
    fn waits_double_up_to_a_bound_and_differ_between_jobs() {
        let terms = RetryTerms::default();
        let waits: Vec<_> = [0, 1, 2, 9].map(|n| wait(submitted_job().id, n, &terms).num_seconds()).to_vec();
        assert_eq!(waits, [12, 24, 48, 480]);
        let other = JobId::new(uuid::Uuid::from_u128(400));
        assert_eq!(wait(other, 0, &terms).num_seconds(), 18);
    }
}
