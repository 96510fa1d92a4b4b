//! A job that Slurm has requeued: why, and which nodes it excludes now.
//!
//! After a node failure Slurm runs the job again under the same id, on the same node as soon as that is back. Other
//! reasons (a preemption, an administrator) do not exclude nodes.

use remote::EarlierRun;
use slurm::{NodeName, SlurmState, node_list};

use crate::{
    clock::Timestamp,
    job::{attempt::PastFailure, stored::Job},
    run::{
        diagnosis::UnhealthyNode,
        exclusion::{excluded, names},
        graces::RetryTerms,
    },
};

/// A requeued job, and the change of its exclusions.
#[derive(Debug, Clone)]
pub struct ExplainedRequeue {
    pub job: Job,
    /// All nodes to exclude, if they have changed.
    pub exclude: Option<Vec<NodeName>>,
}

/// The requeued job, once it is known how its earlier run ended. `unhealthy` are its nodes that Slurm considers unhealthy;
/// `spare` is how many nodes it can exclude, if that is known.
pub fn explain_requeue(
    job: &Job,
    run: &EarlierRun,
    unhealthy: &[UnhealthyNode],
    terms: &RetryTerms,
    spare: Option<usize>,
    now: Timestamp,
) -> ExplainedRequeue {
    let mut job = job.clone();
    let Some(attempt) = &mut job.attempt else { return ExplainedRequeue { job, exclude: None } };
    attempt.explained_requeues = job.run.requeues;
    let why = if matches!(run.state, SlurmState::NodeFail | SlurmState::BootFail) {
        let nodes: Vec<NodeName> =
            node_list::expand(&run.nodes).iter().filter_map(|name| name.parse().ok()).collect();
        // Of several nodes only Slurm knows which one failed, until that is back.
        let blamed = match nodes.as_slice() {
            [_] => nodes,
            _ => unhealthy.iter().map(|node| node.name.clone()).filter(|name| nodes.contains(name)).collect(),
        };
        let signature = run.state.as_str().to_ascii_lowercase();
        let failure = PastFailure::of(attempt, 0, signature, blamed, now);
        job.failures.push(PastFailure { requeued: true, ..failure });
        "a node failed"
    } else if run.state == SlurmState::Preempted {
        "a job of higher priority took its nodes"
    } else {
        "it was requeued on the cluster"
    };
    let exclude = excluded(&job, terms, spare, now);
    let failed = excluded(&job, terms, None, now);
    let without = match (exclude.as_slice(), failed.as_slice()) {
        ([], []) => String::new(),
        ([], failed) => format!("; it may get {} again, because it needs all nodes", names(failed)),
        (nodes, _) => format!("; excluding {}", names(nodes)),
    };
    job.message = format!("Back in Slurm's queue: {why}{without}.");
    let changed = job.attempt.as_ref().is_some_and(|attempt| attempt.excluded != exclude);
    ExplainedRequeue { exclude: changed.then_some(exclude), job }
}

impl Job {
    /// Whether Slurm has requeued it, and the reason is not known yet.
    pub fn has_unexplained_requeue(&self) -> bool {
        let explained = self.attempt.as_ref().map_or(0, |attempt| attempt.explained_requeues);
        self.run.waits_again && self.run.requeues > explained
    }

    /// The job, if the reason of the requeue cannot be found.
    #[must_use]
    pub fn without_explanation(&self) -> Self {
        let mut job = self.clone();
        if let Some(attempt) = &mut job.attempt {
            attempt.explained_requeues = job.run.requeues;
        }
        job
    }
}

#[cfg(test)]
mod tests {
    use chrono::DateTime;

    use super::*;
    use crate::fixtures::submitted_job;

    fn after(state: SlurmState, nodes: &str, unhealthy: &[UnhealthyNode]) -> ExplainedRequeue {
        let mut job = submitted_job();
        (job.run.waits_again, job.run.requeues) = (true, 1);
        let run = EarlierRun { state, nodes: nodes.to_owned() };
        explain_requeue(&job, &run, unhealthy, &RetryTerms::default(), None, DateTime::UNIX_EPOCH)
    }

    #[test]
    fn a_node_that_failed_is_excluded() {
        let after = after(SlurmState::NodeFail, "node01", &[]);
        assert_eq!(after.exclude, Some(vec!["node01".parse().unwrap()]));
        assert_eq!(after.job.message, "Back in Slurm's queue: a node failed; excluding node01.");
        assert!(!after.job.has_unexplained_requeue());
    }

    #[test]
    fn a_node_that_cannot_be_spared_is_not_excluded() {
        let mut job = submitted_job();
        job.attempt.as_mut().unwrap().excluded = vec!["node02".parse().unwrap()];
        let run = EarlierRun { state: SlurmState::NodeFail, nodes: "node01".to_owned() };
        let after = explain_requeue(&job, &run, &[], &RetryTerms::default(), Some(0), DateTime::UNIX_EPOCH);
        assert_eq!(after.exclude, Some(Vec::new()), "earlier exclusions end too");
        assert!(after.job.message.ends_with("it may get node01 again, because it needs all nodes."));
    }

    #[test]
    fn the_unhealthy_one_of_several_nodes_is_excluded() {
        let unhealthy = [UnhealthyNode { name: "node02".parse().unwrap(), state: "down".to_owned() }];
        let exclude = after(SlurmState::NodeFail, "node[01-03]", &unhealthy).exclude;
        assert_eq!(exclude, Some(vec!["node02".parse().unwrap()]));
        assert_eq!(after(SlurmState::NodeFail, "node[01-03]", &[]).exclude, None);
    }

    #[test]
    fn a_preemption_excludes_no_node() {
        let after = after(SlurmState::Preempted, "node01", &[]);
        assert_eq!(after.exclude, None);
        assert!(after.job.failures.is_empty());
    }
}
