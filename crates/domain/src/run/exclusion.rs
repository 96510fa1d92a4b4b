//! Which nodes a job is kept away from, and when it may use them again.
//!
//! A job that Slurm finds no place for is worse off than one that meets a bad node again: an exclusion never outlives
//! its use.

use chrono::TimeDelta;
use slurm::NodeName;

use crate::{
    clock::Timestamp,
    job::{
        status::Phase,
        stored::{DesiredState, Job},
    },
    run::retry::RetryTerms,
};

/// More names than this are no bad nodes but a broken cluster; Slurm would find no place left.
const MOST_EXCLUDED: usize = 16;

/// The nodes that the job is to be kept away from: those that failed under it, the newest first. `spare` is how many it
/// can do without, if that is known.
pub fn excluded(job: &Job, terms: &RetryTerms, spare: Option<usize>, now: Timestamp) -> Vec<NodeName> {
    let most = spare.map_or(MOST_EXCLUDED, |spare| spare.min(MOST_EXCLUDED));
    let mut nodes = Vec::new();
    let recent =
        job.failures.iter().rev().filter(|past| !past.allowed_again && now - past.at < terms.exclude_for);
    for node in recent.flat_map(|past| &past.nodes) {
        if nodes.len() < most && !nodes.contains(node) {
            nodes.push(node.clone());
        }
    }
    nodes
}

pub(crate) fn names(nodes: &[NodeName]) -> String {
    nodes.iter().map(NodeName::as_str).collect::<Vec<_>>().join(", ")
}

/// Fewer nodes that a waiting job is kept away from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RelaxedExclusions {
    /// What is left of them.
    pub keep: Vec<NodeName>,
    freed: Vec<NodeName>,
    why: Why,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Why {
    /// Slurm's word for that no other node fits.
    NoPlace(String),
    Expired,
}

/// Slurm evaluates a job anew once a minute, and until then may show the reason that it had before the exclusion.
const EVALUATED_AFTER: TimeDelta = TimeDelta::minutes(1);

/// What a job in Slurm's queue is not to be kept away from any longer; nothing if that is to stay as it is.
pub fn relax_exclusions(job: &Job, terms: &RetryTerms, now: Timestamp) -> Option<RelaxedExclusions> {
    let attempt = job.attempt.as_ref().filter(|attempt| !attempt.requeue_unexplained)?;
    if attempt.excluded.is_empty() || job.phase != Phase::InQueue || job.desired != DesiredState::Run {
        return None;
    }
    let since = job.failures.last().map(|past| past.at).max(attempt.submitted_at);
    let reason = job.pending_reason.as_deref().unwrap_or_default();
    // A job that has run cannot have had this one before: and Slurm looks at it no more.
    let is_final = reason.starts_with("BadConstraints");
    if is_final || finds_no_node(reason) && since.is_none_or(|since| now - since >= EVALUATED_AFTER) {
        let why = Why::NoPlace(reason.to_owned());
        return Some(RelaxedExclusions { keep: Vec::new(), freed: attempt.excluded.clone(), why });
    }
    let still = excluded(job, terms, None, now);
    let (keep, freed): (Vec<_>, Vec<_>) =
        attempt.excluded.iter().cloned().partition(|node| still.contains(node));
    (!freed.is_empty()).then_some(RelaxedExclusions { keep, freed, why: Why::Expired })
}

/// Whether Slurm says that the nodes which the job may use are none, or not available: as squeue prints it (22.05, 24.11),
/// or with underscores, as scontrol does.
fn finds_no_node(reason: &str) -> bool {
    const WORDS: [&str; 3] = ["ReqNodeNotAvail", "Nodes required for job are DOWN", "PartitionConfig"];
    let reason = reason.replace('_', " ");
    WORDS.iter().any(|word| reason.starts_with(word))
}

impl RelaxedExclusions {
    /// What is said of the job until it is done.
    pub(crate) fn announced(&self) -> String {
        self.sentence("is to be")
    }

    fn sentence(&self, verb: &str) -> String {
        let names = names(&self.freed);
        match &self.why {
            Why::NoPlace(reason) => format!(
                "Waiting in Slurm's queue: no node fits without {names}, which failed under the job, so it {verb} allowed \
                 there again ({reason})."
            ),
            Why::Expired => format!(
                "Waiting in Slurm's queue: {names} failed under the job long enough ago, so it {verb} allowed there again."
            ),
        }
    }
}

impl Job {
    /// The job once Slurm has taken the relief.
    #[must_use]
    pub fn with_relaxed_exclusions(&self, relief: &RelaxedExclusions) -> Self {
        let mut job = self.clone();
        if let Some(attempt) = &mut job.attempt {
            attempt.excluded.clone_from(&relief.keep);
        }
        if matches!(relief.why, Why::NoPlace(_)) {
            job.allow_again(&relief.freed);
        }
        job.message = relief.sentence("is");
        job
    }

    /// What these nodes did is not held against them any more: there is no place without them.
    pub(crate) fn allow_again(&mut self, nodes: &[NodeName]) {
        for past in &mut self.failures {
            past.allowed_again |= past.nodes.iter().any(|node| nodes.contains(node));
        }
    }
}

#[cfg(test)]
mod tests {
    use chrono::DateTime;
    use test_case::test_case;

    use super::*;
    use crate::{fixtures::submitted_job, run::retry::PastFailure};

    const T0: Timestamp = DateTime::UNIX_EPOCH;

    fn node(name: &str) -> NodeName {
        name.parse().unwrap()
    }

    /// Waits for `reason`, kept away from two nodes that failed one hour after the other.
    fn waiting(reason: &str) -> Job {
        let mut job = submitted_job();
        job.pending_reason = Some(reason.to_owned());
        for (hours, name) in [(0, "node01"), (1, "node02")] {
            job.failures.push(PastFailure {
                attempt: 1,
                slurm_id: None,
                signature: "node_fail".to_owned(),
                nodes: vec![node(name)],
                at: T0 + TimeDelta::hours(hours),
                allowed_again: false,
            });
        }
        job.attempt.as_mut().unwrap().excluded = vec![node("node02"), node("node01")];
        job
    }

    fn after(job: &Job, minutes: i64) -> Option<RelaxedExclusions> {
        relax_exclusions(job, &RetryTerms::default(), T0 + TimeDelta::hours(1) + TimeDelta::minutes(minutes))
    }

    #[test]
    fn a_node_is_forgiven_after_a_while() {
        let (job, terms) = (waiting("Resources"), RetryTerms::default());
        assert_eq!(excluded(&job, &terms, None, T0), [node("node02"), node("node01")]);
        assert_eq!(excluded(&job, &terms, None, T0 + terms.exclude_for), [node("node02")]);
    }

    #[test]
    fn no_more_nodes_are_left_out_than_the_job_can_do_without_the_newest_first() {
        let (job, terms) = (waiting("Resources"), RetryTerms::default());
        assert_eq!(excluded(&job, &terms, Some(1), T0), [node("node02")]);
        assert_eq!(excluded(&job, &terms, Some(0), T0), []);
        assert_eq!(excluded(&job, &terms, Some(9), T0).len(), 2);
    }

    #[test_case("ReqNodeNotAvail, UnavailableNodes:node[02-04]" => true)]
    #[test_case("ReqNodeNotAvail, May be reserved for other job" => true)]
    #[test_case("Nodes required for job are DOWN, DRAINED or reserved for jobs in higher priority partitions" => true)]
    #[test_case("Nodes_required_for_job_are_DOWN,_DRAINED_or_reserved" => true)]
    #[test_case("PartitionConfig" => true)]
    #[test_case("BadConstraints" => true)]
    #[test_case("Resources" => false)]
    #[test_case("Priority" => false)]
    #[test_case("BeginTime" => false)]
    #[test_case("JobHeldUser" => false)]
    fn a_job_that_finds_no_node_is_allowed_on_all_of_them(reason: &str) -> bool {
        let relief = after(&waiting(reason), 1);
        assert!(relief.iter().all(|relief| relief.keep.is_empty()));
        relief.is_some()
    }

    #[test]
    fn a_reason_from_before_the_exclusion_is_waited_out() {
        assert_eq!(after(&waiting("ReqNodeNotAvail"), 0), None);
        assert!(after(&waiting("BadConstraints"), 0).is_some(), "which Slurm never looks at again");
    }

    #[test]
    fn what_left_no_place_is_not_left_out_again() {
        let job = waiting("BadConstraints");
        let relief = after(&job, 0).unwrap();
        assert!(relief.announced().contains("is to be allowed there again (BadConstraints)"));
        let job = job.with_relaxed_exclusions(&relief);
        assert_eq!(
            job.message,
            "Waiting in Slurm's queue: no node fits without node02, node01, which failed under the job, so it is allowed \
             there again (BadConstraints)."
        );
        assert_eq!(excluded(&job, &RetryTerms::default(), None, T0), []);
        assert_eq!(after(&job, 60), None, "and nothing is left to lift");
    }

    #[test]
    fn an_exclusion_expires_while_the_job_waits() {
        let job = waiting("Resources");
        assert_eq!(after(&job, 22 * 60), None);
        let relief = after(&job, 23 * 60).unwrap();
        assert_eq!(relief.keep, [node("node02")]);
        let job = job.with_relaxed_exclusions(&relief);
        assert!(job.message.contains("node01 failed under the job long enough ago"), "{}", job.message);
        assert!(job.failures.iter().all(|past| !past.allowed_again));
        assert_eq!(after(&job, 24 * 60).unwrap().keep, []);
    }

    #[test]
    fn a_job_that_runs_or_is_to_be_ended_or_explained_is_left_alone() {
        let job = waiting("BadConstraints");
        assert_eq!(after(&Job { phase: Phase::Running, ..job.clone() }, 0), None);
        assert_eq!(after(&Job { desired: DesiredState::Cancel, ..job.clone() }, 0), None);
        let mut requeued = job;
        requeued.attempt.as_mut().unwrap().requeue_unexplained = true;
        assert_eq!(after(&requeued, 0), None);
    }
}
