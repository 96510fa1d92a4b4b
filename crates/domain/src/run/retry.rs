//! The retry decision: whether a failed attempt is retried, and after how long.

use std::collections::BTreeSet;

use chrono::TimeDelta;
use slurm::NodeName;

use crate::{
    clock::Timestamp,
    job::{identity::JobId, stored::Job},
    run::{
        diagnosis::{Cause, Diagnosis},
        exclusion::{excluded, names},
        graces::RetryTerms,
    },
};

/// Whether the job is retried.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum RetryDecision {
    Yes { wait: TimeDelta, why: String },
    No { why: String },
}

/// The same fault on this many different nodes is the job's own.
const SAME_FAULT_NODES: usize = 3;
/// After this many failures by cached files of the image, no conversion makes one that works.
const SAME_FAULT_FILES: usize = 3;

/// Decides about a retry after a failure with this diagnosis; `job.failures` already includes it if it counts. `spare` is
/// how many nodes the job can exclude, if that is known.
pub(crate) fn decide_retry(
    job: &Job,
    diagnosis: Option<&Diagnosis>,
    terms: &RetryTerms,
    spare: Option<usize>,
    now: Timestamp,
) -> RetryDecision {
    let no = |why: String| RetryDecision::No { why };
    let Some(found) = diagnosis else {
        return no("Not retried: there is no sign of an infrastructure failure.".to_owned());
    };
    if found.cause == Cause::User {
        return no(format!("Not retried: {}.", found.why));
    }
    let same = || job.failures.iter().filter(|past| past.signature == found.signature);
    if found.cause == Cause::CachedFile && same().count() >= SAME_FAULT_FILES {
        return no(format!(
            "Not retried: the cached file of the image could not be used {} times: {}.",
            same().count(),
            found.why
        ));
    }
    let nodes: BTreeSet<&NodeName> = same().flat_map(|past| &past.nodes).collect();
    if nodes.len() >= SAME_FAULT_NODES {
        let names: Vec<&str> = nodes.iter().map(|node| node.as_str()).collect();
        return no(format!(
            "Not retried: the same fault ({}) occurred on {} different nodes ({}), so the nodes are not the cause: {}.",
            found.signature,
            names.len(),
            names.join(", "),
            found.why
        ));
    }
    let budget = job.spec.max_retries;
    if job.retry_count >= budget {
        return no(format!("Not retried: all {budget} retries are used: {}.", found.why));
    }
    let wait = wait(job.id, job.retry_count, terms);
    let exclusions = match excluded(job, terms, spare, now).as_slice() {
        [] => String::new(),
        nodes => format!(", excluding {}", names(nodes)),
    };
    let retry = job.retry_count + 1;
    let remedy = if found.cause == Cause::CachedFile { "; the cache is checked first" } else { "" };
    let why = format!(
        "Retrying in {} s (retry {retry} of {budget}){exclusions}: {}{remedy}.",
        wait.num_seconds(),
        found.why
    );
    RetryDecision::Yes { wait, why }
}

/// The wait doubles with each retry, and differs by up to a fifth between jobs, so that a hundred jobs that failed
/// together are not retried together.
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
    use crate::{fixtures::submitted_job, job::attempt::PastFailure};

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
                task: 0,
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
    fn a_failed_node_is_excluded_and_named() {
        let why = match decide(&failed_on(&["node01"]), Some(&broken())) {
            RetryDecision::Yes { why, .. } => why,
            other @ RetryDecision::No { .. } => panic!("{other:?}"),
        };
        assert_eq!(why, "Retrying in 12 s (retry 1 of 10), excluding node01: a node of the job failed.");
    }

    #[test]
    fn a_failed_node_that_cannot_be_spared_is_not_excluded() {
        let decision =
            decide_retry(&failed_on(&["node01"]), Some(&broken()), &RetryTerms::default(), Some(0), T0);
        assert!(
            matches!(decision, RetryDecision::Yes { why, .. } if why.starts_with("Retrying in 12 s (retry 1 of 10): "))
        );
    }

    #[test]
    fn a_fault_of_the_job_is_not_retried() {
        let found = Diagnosis { cause: Cause::User, why: "its batch is too large".to_owned(), ..broken() };
        let why = "Not retried: its batch is too large.".to_owned();
        assert_eq!(decide(&failed_on(&[]), Some(&found)), RetryDecision::No { why });
    }

    #[test]
    fn an_unknown_failure_is_not_retried() {
        assert!(matches!(decide(&failed_on(&[]), None), RetryDecision::No { .. }));
    }

    #[test]
    fn the_same_fault_on_three_nodes_ends_the_retries() {
        assert!(matches!(decide(&failed_on(&["a", "b", "b"]), Some(&broken())), RetryDecision::Yes { .. }));
        let stopped = decide(&failed_on(&["a", "b", "c"]), Some(&broken()));
        assert!(matches!(stopped, RetryDecision::No { why } if why.contains("3 different nodes (a, b, c)")));
    }

    #[test]
    fn a_cached_file_that_never_works_ends_the_retries() {
        let found = Diagnosis {
            cause: Cause::CachedFile,
            why: "the file of the image is damaged".to_owned(),
            nodes: Vec::new(),
            ..broken()
        };
        let decision = decide(&failed_on(&["a", "a"]), Some(&found));
        assert!(
            matches!(&decision, RetryDecision::Yes { why, .. } if why.ends_with("is damaged; the cache is checked first.")),
            "{decision:?}"
        );
        let stopped = decide(&failed_on(&["a", "a", "a"]), Some(&found));
        assert!(matches!(stopped, RetryDecision::No { why } if why.contains("could not be used 3 times")));
    }

    #[test]
    fn different_faults_on_three_nodes_do_not_end_the_retries() {
        let mut job = failed_on(&["a", "b", "c"]);
        "xid".clone_into(&mut job.failures[0].signature);
        assert!(matches!(decide(&job, Some(&broken())), RetryDecision::Yes { .. }));
    }

    #[test]
    fn the_budget_ends_the_retries() {
        let mut job = failed_on(&["a"]);
        job.retry_count = job.spec.max_retries;
        assert!(
            matches!(decide(&job, Some(&broken())), RetryDecision::No { why } if why.contains("all 10 retries"))
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
