//! The explanation of why a job is pending in Slurm's queue.

use std::borrow::Cow;

use chrono::TimeDelta;
use slurm::{
    SlurmState,
    pending_reason::{Explanation, Holder, Outlook, explain},
};

use crate::{
    clock::Timestamp,
    job::{status::Phase, stored::Job},
};

/// The longest text of Slurm in a message, in characters: a list of nodes may be very long.
const SHOWN: usize = 200;

/// Why the job is pending; `None` if it is not pending, or if the reason is unknown.
///
/// `has_nodes`: enough nodes for the job surely work, so a reason that blames nodes means that they are busy.
pub fn explain_wait(job: &Job, has_nodes: bool) -> Option<Explanation> {
    if is_busy(job, has_nodes) {
        return Some(BUSY);
    }
    let state = job.run.state.as_ref().filter(|_| job.phase == Phase::InQueue)?;
    explained(state, job.pending_reason.as_deref()?)
}

fn is_busy(job: &Job, has_nodes: bool) -> bool {
    has_nodes && blames_nodes(job)
}

impl Job {
    /// Its message, which gives the same cause as [`explain_wait`]. The stored one knows only Slurm's reason.
    pub fn explained_message(&self, has_nodes: bool) -> String {
        let reason = self.pending_reason.as_deref().filter(|_| is_busy(self, has_nodes));
        let stored = reason.map(|reason| pending_message(&SlurmState::Pending, reason));
        // Another message, such as that of a requeue, blames no nodes.
        if stored.as_ref() == Some(&self.message) {
            format!("Waiting in Slurm's queue: {}.", BUSY.meaning)
        } else {
            self.message.clone()
        }
    }
}

/// Whether Slurm's reason says that nodes may be down, and names none. Slurm gives it too when all nodes are in use by, or
/// held for, jobs that come first.
pub fn blames_nodes(job: &Job) -> bool {
    const WORDS: [&str; 2] = ["Nodes required for job are DOWN", "ReqNodeNotAvail"];
    if job.phase != Phase::InQueue || job.run.state.as_ref() != Some(&SlurmState::Pending) {
        return false;
    }
    let reason = job.pending_reason.as_deref().unwrap_or_default().replace('_', " ");
    let [all, some] = WORDS.map(|word| reason.strip_prefix(word));
    all.is_some() || some.is_some_and(|rest| matches!(rest.trim(), "" | ", UnavailableNodes:"))
}

const BUSY: Explanation = Explanation {
    holder: Holder::Resources,
    limit: None,
    meaning: Cow::Borrowed(
        "its partition has enough nodes that work, but they are in use or held for jobs of higher priority",
    ),
    advice: "Wait, or request less.",
    outlook: Outlook::Waits,
};

/// How long the job has been pending until `now`, or was pending before it last started.
pub fn queue_wait(job: &Job, now: Option<Timestamp>) -> Option<TimeDelta> {
    let attempt = job.attempt.as_ref()?;
    let since = job.run.queued_since.or(attempt.submitted_at)?;
    let until = if job.phase == Phase::InQueue { now } else { job.run.started_at };
    // The cluster's clock may be ahead of ours.
    Some((until? - since).max(TimeDelta::zero()))
}

/// The start estimate to store. Slurm's estimate moves a little with each scheduling cycle, so a small change keeps the
/// known one. An estimate in the past does not count.
pub(crate) fn estimated_start(
    known: Option<Timestamp>,
    reported: Option<Timestamp>,
    now: Timestamp,
) -> Option<Timestamp> {
    let reported = reported.filter(|at| *at > now)?;
    let tolerance = ((reported - now) / TOLERANCE).max(LEAST_TOLERANCE);
    known.filter(|known| *known > now && (reported - *known).abs() <= tolerance).or(Some(reported))
}

/// An estimate may move by a tenth of the time that is left, or by this much.
const TOLERANCE: i32 = 10;
const LEAST_TOLERANCE: TimeDelta = TimeDelta::minutes(1);

/// Until when [`estimated_start`] keeps the known estimate while Slurm reports the same; `None` if it changes now.
pub(crate) fn estimate_holds_until(
    known: Option<Timestamp>,
    reported: Option<Timestamp>,
    now: Timestamp,
) -> Option<Timestamp> {
    if estimated_start(known, reported, now) != known {
        return None;
    }
    // An estimate in the past stays in the past.
    let Some(known) = known else { return Some(Timestamp::MAX_UTC) };
    let reported = reported?;
    let off = (reported - known).abs();
    let tolerated_until = if off <= LEAST_TOLERANCE { reported } else { reported - off * TOLERANCE };
    Some(known.min(reported).min(tolerated_until))
}

/// The message of a pending job with this state and reason.
pub(crate) fn pending_message(state: &SlurmState, reason: &str) -> String {
    let (shown, known) = (shortened(reason), explained(state, reason));
    if is_preparing(state) {
        return "Slurm is preparing the nodes.".to_owned();
    }
    match known {
        Some(known) if known.holder == Holder::Hold => {
            format!("Held on the cluster ({shown}): {}; release it there.", known.meaning)
        }
        _ if matches!(reason, "None" | "") => "Waiting in Slurm's queue.".to_owned(),
        Some(Explanation { meaning, outlook: Outlook::Hopeless, .. }) => {
            format!("Waiting in Slurm's queue: {meaning}, so the job cannot start; cancel it ({shown}).")
        }
        Some(known) => format!("Waiting in Slurm's queue: {} ({shown}).", known.meaning),
        None => format!("Waiting in Slurm's queue: {shown}."),
    }
}

fn explained(state: &SlurmState, reason: &str) -> Option<Explanation> {
    if is_preparing(state) {
        return explain("Prolog");
    }
    let known = explain(reason);
    let is_held =
        matches!(state, SlurmState::RequeueHold | SlurmState::SpecialExit | SlurmState::ResvDelHold)
            || reason.starts_with("JobHeld")
            || reason.contains("held");
    if !is_held {
        return known;
    }
    known.filter(|known| known.holder == Holder::Hold).or(Some(Explanation {
        holder: Holder::Hold,
        limit: None,
        meaning: Cow::Borrowed("the job is on hold"),
        advice: "Release it with `scontrol release ID`. Only an administrator can release an administrator's hold.",
        outlook: Outlook::NeedsAction,
    }))
}

fn is_preparing(state: &SlurmState) -> bool {
    matches!(state, SlurmState::Configuring | SlurmState::PowerUpNode)
}

fn shortened(text: &str) -> Cow<'_, str> {
    match text.char_indices().nth(SHOWN) {
        Some((end, _)) => Cow::Owned(format!("{}…", &text[..end])),
        None => Cow::Borrowed(text),
    }
}

#[cfg(test)]
mod tests {
    use chrono::DateTime;
    use test_case::test_case;

    use super::*;
    use crate::fixtures::submitted_job;

    const T0: Timestamp = DateTime::UNIX_EPOCH;

    fn at(minutes: i64) -> Timestamp {
        T0 + TimeDelta::minutes(minutes)
    }

    #[test_case("None" => "Waiting in Slurm's queue.")]
    #[test_case("Resources" => "Waiting in Slurm's queue: the requested resources are in use, and the job is next in line (Resources).")]
    #[test_case("JobHeldAdmin" => "Held on the cluster (JobHeldAdmin): an administrator holds the job; release it there.")]
    #[test_case("launch failed requeued held" => "Held on the cluster (launch failed requeued held): the launch failed, so Slurm holds the job; release it there.")]
    #[test_case("something new, held" => "Held on the cluster (something new, held): the job is on hold; release it there.")]
    #[test_case("DependencyNeverSatisfied" => "Waiting in Slurm's queue: a job that it depends on failed, so the job cannot start; cancel it (DependencyNeverSatisfied).")]
    #[test_case("AssocGrpGRES" => "Waiting in Slurm's queue: running jobs of its association (account and user) use all GPUs or other generic resources that it allows (AssocGrpGRES).")]
    #[test_case("PlanetsNotAligned" => "Waiting in Slurm's queue: PlanetsNotAligned.")]
    fn a_reason_is_a_sentence(reason: &str) -> String {
        pending_message(&SlurmState::Pending, reason)
    }

    #[test]
    fn an_unknown_reason_is_shown_and_cut() {
        let message = pending_message(&SlurmState::Pending, &"ä".repeat(1000));
        assert_eq!(message.chars().count(), "Waiting in Slurm's queue: ….".chars().count() + SHOWN);
    }

    #[test_case(
        "Nodes required for job are DOWN, DRAINED or reserved for jobs in higher priority partitions",
        true
    )]
    #[test_case(
        "Nodes_required_for_job_are_DOWN,_DRAINED_or_reserved_for_jobs_in_higher_priority_partitions",
        true
    )]
    #[test_case("ReqNodeNotAvail", true)]
    #[test_case("ReqNodeNotAvail, UnavailableNodes:", true)]
    #[test_case("ReqNodeNotAvail, UnavailableNodes:node02", false ; "Slurm names the node")]
    #[test_case("ReqNodeNotAvail, Reserved for maintenance", false)]
    #[test_case("NodeDown", false)]
    #[test_case("Resources", false)]
    fn a_reason_that_blames_nodes_means_busy_ones_if_enough_work(reason: &str, blames: bool) {
        let mut job = submitted_job();
        job.pending_reason = Some(reason.to_owned());
        job.run.state = Some(SlurmState::Pending);
        assert_eq!(blames_nodes(&job), blames);
        let unknown = explain_wait(&job, false).unwrap();
        let known = explain_wait(&job, true).unwrap();
        assert_eq!(known.holder == Holder::Resources && known.meaning.contains("in use or held"), blames);
        if blames {
            assert_eq!((unknown.outlook, known.outlook), (Outlook::NeedsAction, Outlook::Waits));
        } else {
            assert_eq!(unknown, known);
        }
        job.message = pending_message(&SlurmState::Pending, reason);
        assert!(job.explained_message(true).contains(&*known.meaning), "{}", job.message);
        assert_eq!(job.explained_message(false), job.message);
        "Back in Slurm's queue: a node failed.".clone_into(&mut job.message);
        assert_eq!(job.explained_message(true), job.message, "it tells another thing");
    }

    #[test]
    fn the_state_overrides_the_reason() {
        assert_eq!(explained(&SlurmState::RequeueHold, "None").unwrap().holder, Holder::Hold);
        assert_eq!(explained(&SlurmState::Configuring, "Priority").unwrap().holder, Holder::Slurm);
    }

    #[test_case(None, Some(30) => Some(30) ; "the first estimate is stored")]
    #[test_case(Some(30), Some(33) => Some(30) ; "a tenth of the time left is tolerated")]
    #[test_case(Some(30), Some(36) => Some(36) ; "more is not")]
    #[test_case(Some(2), Some(3) => Some(2) ; "a minute is tolerated")]
    #[test_case(Some(30), None => None ; "Slurm has no estimate any more")]
    #[test_case(Some(30), Some(-1) => None ; "a past estimate does not count")]
    #[test_case(Some(-1), Some(1) => Some(1) ; "a past estimate is replaced")]
    fn an_estimate_changes_only_when_it_moved_far(known: Option<i64>, reported: Option<i64>) -> Option<i64> {
        estimated_start(known.map(at), reported.map(at), T0).map(|at| (at - T0).num_minutes())
    }

    #[test]
    fn the_wait_ends_when_the_job_starts_and_restarts_after_a_requeue() {
        let mut job = submitted_job();
        let wait = |job: &Job| queue_wait(job, Some(at(30))).map(|wait| wait.num_minutes());
        assert_eq!(wait(&job), Some(30));
        job.run.queued_since = Some(at(20));
        assert_eq!(wait(&job), Some(10));
        job.phase = Phase::Running;
        job.run.started_at = Some(at(25));
        assert_eq!(wait(&job), Some(5));
    }
}
