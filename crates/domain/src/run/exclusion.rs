//! Excluded nodes: which nodes a job avoids, and when it may use them again.
//!
//! A job that never starts is worse off than one that meets a bad node again. So exclusions are relaxed when they leave
//! no place for the job.

use chrono::TimeDelta;
use slurm::{NodeName, NodeSet, QueueRow};

use crate::{
    clock::Timestamp,
    job::{
        attempt::Attempt,
        identity::AttemptNo,
        run::Run,
        status::Phase,
        stored::{DesiredState, Job},
    },
    run::graces::RetryTerms,
};

/// More bad nodes than this mean a broken cluster, and Slurm would find no place for the job.
const MOST_EXCLUDED: usize = 16;

/// The nodes to exclude: those that failed the job, the newest first. `spare` is how many nodes the job can exclude, if
/// that is known.
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

/// All nodes that Slurm keeps from the job: these and those that its owner excludes, without those that it needs. Slurm replaces
/// the whole list.
pub fn with_own_exclusions(job: &Job, nodes: &[NodeName]) -> Vec<NodeName> {
    let nodes_of = |set: Option<&NodeSet>| set.map(NodeSet::nodes).unwrap_or_default();
    let options = &job.spec.options;
    let (needed, mut all) = (nodes_of(options.nodelist.as_ref()), nodes_of(options.exclude.as_ref()));
    for node in nodes {
        if !needed.contains(node) && !all.contains(node) {
            all.push(node.clone());
        }
    }
    all
}

pub(crate) fn names(nodes: &[NodeName]) -> String {
    nodes.iter().map(NodeName::as_str).collect::<Vec<_>>().join(", ")
}

/// A pending job's exclusions, relaxed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RelaxedExclusions {
    pub attempt: AttemptNo,
    /// The nodes that stay excluded.
    pub keep: Vec<NodeName>,
    freed: Vec<NodeName>,
    why: Why,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Why {
    /// No other node fits, with Slurm's pending reason.
    NoPlace(String),
    Expired,
}

/// Slurm evaluates a job once a minute. Until then it may show the reason from before the exclusion.
const EVALUATED_AFTER: TimeDelta = TimeDelta::minutes(1);

/// The relaxed exclusions of a job in Slurm's queue; `None` if they stay as they are.
pub fn relax_exclusions(job: &Job, terms: &RetryTerms, now: Timestamp) -> Option<RelaxedExclusions> {
    let attempt = job.attempt.as_ref().filter(|_| !job.has_unexplained_requeue())?;
    if job.phase != Phase::InQueue || job.desired != DesiredState::Run {
        return None;
    }
    relaxed(job, attempt, job.pending_reason.as_deref().unwrap_or_default(), terms, now).ok()
}

/// As [`relax_exclusions`], for an attempt of a job with an array. `runs` are those of its tasks. If the exclusions stay, `Err` says when
/// to look again.
pub fn relax_attempt<'a>(
    job: &Job,
    attempt: &Attempt,
    runs: impl Iterator<Item = &'a Run>,
    terms: &RetryTerms,
    now: Timestamp,
) -> Result<RelaxedExclusions, Option<Timestamp>> {
    let waiting = runs.filter(|run| run.phase() == Phase::InQueue);
    let reasons = waiting.filter_map(|run| run.reason.as_deref()).filter(|reason| leaves_no_place(reason));
    let reason = reasons.max_by_key(|reason| is_final(reason)).unwrap_or_default();
    relaxed(job, attempt, reason, terms, now)
}

fn relaxed(
    job: &Job,
    attempt: &Attempt,
    reason: &str,
    terms: &RetryTerms,
    now: Timestamp,
) -> Result<RelaxedExclusions, Option<Timestamp>> {
    if attempt.excluded.is_empty() {
        return Err(None);
    }
    let since = job.failures.last().map(|past| past.at).max(attempt.submitted_at);
    let evaluated_at = since.map_or(now, |since| since + EVALUATED_AFTER);
    if is_final(reason) || leaves_no_place(reason) && evaluated_at <= now {
        let why = Why::NoPlace(reason.to_owned());
        return Ok(RelaxedExclusions {
            attempt: attempt.no,
            keep: Vec::new(),
            freed: attempt.excluded.clone(),
            why,
        });
    }
    let still = excluded(job, terms, None, now);
    let (keep, freed): (Vec<_>, Vec<_>) =
        attempt.excluded.iter().cloned().partition(|node| still.contains(node));
    if !freed.is_empty() {
        return Ok(RelaxedExclusions { attempt: attempt.no, keep, freed, why: Why::Expired });
    }
    let expiries = job.failures.iter().map(|past| past.at + terms.exclude_for).filter(|at| *at > now);
    Err(expiries.chain(leaves_no_place(reason).then_some(evaluated_at)).min())
}

/// Slurm never evaluates a job with this reason again. A job that ran cannot have had it before.
fn is_final(reason: &str) -> bool {
    reason.starts_with("BadConstraints")
}

fn leaves_no_place(reason: &str) -> bool {
    is_final(reason) || finds_no_node(reason)
}

/// Whether a task of this attempt waits, perhaps because nodes are excluded. It needs a run, which keeps the reason.
pub fn is_cramped(attempt: &Attempt, row: &QueueRow) -> bool {
    !attempt.excluded.is_empty() && row.state.is_waiting() && leaves_no_place(&row.reason)
}

/// Whether the reason means that no usable node is available. squeue prints it with spaces (22.05, 24.11), scontrol with
/// underscores.
fn finds_no_node(reason: &str) -> bool {
    const WORDS: [&str; 3] = ["ReqNodeNotAvail", "Nodes required for job are DOWN", "PartitionConfig"];
    let reason = reason.replace('_', " ");
    WORDS.iter().any(|word| reason.starts_with(word))
}

impl RelaxedExclusions {
    /// The message until Slurm has accepted the change.
    pub(crate) fn announced(&self) -> String {
        self.message("lifting the exclusion")
    }

    fn message(&self, action: &str) -> String {
        let names = names(&self.freed);
        match &self.why {
            Why::NoPlace(reason) => format!(
                "Waiting in Slurm's queue: no node fits the job without the excluded nodes ({names}); {action} ({reason})."
            ),
            Why::Expired => {
                format!("Waiting in Slurm's queue: the exclusion of {names} has expired; {action}.")
            }
        }
    }
}

impl Job {
    /// The job after Slurm has accepted the change.
    #[must_use]
    pub fn with_relaxed_exclusions(&self, relaxed: &RelaxedExclusions) -> Self {
        let mut job = self.clone();
        let earlier = job.array.iter_mut().flat_map(|array| &mut array.earlier);
        for attempt in earlier.chain(&mut job.attempt).filter(|attempt| attempt.no == relaxed.attempt) {
            attempt.excluded.clone_from(&relaxed.keep);
        }
        if matches!(relaxed.why, Why::NoPlace(_)) {
            job.allow_again(&relaxed.freed);
        }
        job.message = relaxed.message("lifted the exclusion");
        job
    }
}

#[cfg(test)]
mod tests {
    use chrono::DateTime;
    use slurm::SlurmState;
    use test_case::test_case;

    use super::*;
    use crate::{fixtures::submitted_job, job::attempt::PastFailure};

    const T0: Timestamp = DateTime::UNIX_EPOCH;

    fn node(name: &str) -> NodeName {
        name.parse().unwrap()
    }

    /// Pending with `reason`; it excludes two nodes that failed one hour after the other.
    fn waiting(reason: &str) -> Job {
        let mut job = submitted_job();
        job.pending_reason = Some(reason.to_owned());
        for (hours, name) in [(0, "node01"), (1, "node02")] {
            job.failures.push(PastFailure {
                attempt: 1,
                task: 0,
                slurm_id: None,
                signature: "node_fail".to_owned(),
                nodes: vec![node(name)],
                at: T0 + TimeDelta::hours(hours),
                requeued: false,
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
    fn an_exclusion_expires() {
        let (job, terms) = (waiting("Resources"), RetryTerms::default());
        assert_eq!(excluded(&job, &terms, None, T0), [node("node02"), node("node01")]);
        assert_eq!(excluded(&job, &terms, None, T0 + terms.exclude_for), [node("node02")]);
    }

    #[test]
    fn the_owners_exclusions_stay_and_needed_nodes_are_not_excluded() {
        let mut job = waiting("Resources");
        job.spec.options.exclude = Some("node[05-06]".parse().unwrap());
        job.spec.options.nodelist = Some("node01".parse().unwrap());
        let all = with_own_exclusions(&job, &[node("node01"), node("node02"), node("node05")]);
        assert_eq!(all, [node("node05"), node("node06"), node("node02")]);
        assert_eq!(with_own_exclusions(&job, &[]), [node("node05"), node("node06")]);
    }

    #[test]
    fn only_spare_nodes_are_excluded_the_newest_failures_first() {
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
    fn a_job_that_finds_no_node_may_use_all(reason: &str) -> bool {
        let relaxed = after(&waiting(reason), 1);
        assert!(relaxed.iter().all(|relaxed| relaxed.keep.is_empty()));
        relaxed.is_some()
    }

    #[test]
    fn a_reason_from_before_the_exclusion_does_not_count() {
        assert_eq!(after(&waiting("ReqNodeNotAvail"), 0), None);
        assert!(after(&waiting("BadConstraints"), 0).is_some(), "Slurm never evaluates it again");
    }

    #[test]
    fn nodes_that_are_needed_are_not_excluded_again() {
        let job = waiting("BadConstraints");
        let relaxed = after(&job, 0).unwrap();
        assert!(relaxed.announced().contains("lifting the exclusion (BadConstraints)"));
        let job = job.with_relaxed_exclusions(&relaxed);
        assert_eq!(
            job.message,
            "Waiting in Slurm's queue: no node fits the job without the excluded nodes (node02, node01); lifted the \
             exclusion (BadConstraints)."
        );
        assert_eq!(excluded(&job, &RetryTerms::default(), None, T0), []);
        assert_eq!(after(&job, 60), None, "no exclusion is left");
    }

    #[test]
    fn an_exclusion_expires_while_the_job_waits() {
        let job = waiting("Resources");
        assert_eq!(after(&job, 22 * 60), None);
        let relaxed = after(&job, 23 * 60).unwrap();
        assert_eq!(relaxed.keep, [node("node02")]);
        let job = job.with_relaxed_exclusions(&relaxed);
        assert!(job.message.contains("the exclusion of node01 has expired"), "{}", job.message);
        assert!(job.failures.iter().all(|past| !past.allowed_again));
        assert_eq!(after(&job, 24 * 60).unwrap().keep, []);
    }

    #[test_case(&["Resources"], 5 => Err(Some(23 * 60)); "until an exclusion expires")]
    #[test_case(&["ReqNodeNotAvail"], 0 => Err(Some(1)); "until Slurm has evaluated it")]
    #[test_case(&["ReqNodeNotAvail"], 1 => Ok(0); "no node is usable")]
    #[test_case(&["ReqNodeNotAvail", "BadConstraints"], 0 => Ok(0); "one will never run")]
    #[test_case(&[], 23 * 60 => Ok(1); "one exclusion has expired")]
    fn an_attempt_of_an_array_keeps_its_exclusions(
        reasons: &[&str],
        minutes: i64,
    ) -> Result<usize, Option<i64>> {
        let mut job = waiting("");
        let attempt = job.attempt.take().unwrap();
        let run = |state: SlurmState, reason: &str| Run {
            state: Some(state),
            reason: Some(reason.to_owned()),
            ..Run::default()
        };
        let mut runs: Vec<_> = reasons.iter().map(|reason| run(SlurmState::Pending, reason)).collect();
        runs.push(run(SlurmState::Running, "BadConstraints"));
        let failed_at = T0 + TimeDelta::hours(1);
        let now = failed_at + TimeDelta::minutes(minutes);
        let relaxed = relax_attempt(&job, &attempt, runs.iter(), &RetryTerms::default(), now);
        relaxed.map(|relaxed| relaxed.keep.len()).map_err(|at| at.map(|at| (at - failed_at).num_minutes()))
    }

    #[test]
    fn only_an_explained_pending_job_relaxes_its_exclusions() {
        let job = waiting("BadConstraints");
        assert_eq!(after(&Job { phase: Phase::Running, ..job.clone() }, 0), None);
        assert_eq!(after(&Job { desired: DesiredState::Cancel, ..job.clone() }, 0), None);
        let mut requeued = job;
        (requeued.run.waits_again, requeued.run.requeues) = (true, 1);
        assert_eq!(after(&requeued, 0), None);
    }
}
