//! What a person is told about a job that waits in Slurm's queue.

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

/// The longest text of Slurm in a sentence of ours, in characters: a list of nodes may be very long.
const SHOWN: usize = 200;

/// Why the job waits in Slurm's queue; nothing when it does not, or for a reason that nobody has explained.
pub fn explain_wait(job: &Job) -> Option<Explanation> {
    let attempt = job.attempt.as_ref().filter(|_| job.phase == Phase::InQueue)?;
    explained(attempt.slurm_state.as_ref()?, job.pending_reason.as_deref()?)
}

/// How long the job waits in Slurm's queue until `now`, or has waited before it last began.
pub fn queue_wait(job: &Job, now: Option<Timestamp>) -> Option<TimeDelta> {
    let attempt = job.attempt.as_ref()?;
    let since = attempt.queued_since.or(attempt.submitted_at)?;
    let until = if job.phase == Phase::InQueue { now } else { attempt.started_at };
    // The cluster's clock may be ahead of ours.
    Some((until? - since).max(TimeDelta::zero()))
}

/// When Slurm expects to start a job, as it is to be kept: with each of its rounds the estimate moves a little, which is
/// no news. What lies in the past is none.
pub(crate) fn estimated_start(
    known: Option<Timestamp>,
    told: Option<Timestamp>,
    now: Timestamp,
) -> Option<Timestamp> {
    let told = told.filter(|at| *at > now)?;
    let play = ((told - now) / PLAY).max(LEAST_PLAY);
    known.filter(|known| *known > now && (told - *known).abs() <= play).or(Some(told))
}

/// An estimate may move by so large a part of what is left, or by so much.
const PLAY: i32 = 10;
const LEAST_PLAY: TimeDelta = TimeDelta::minutes(1);

/// Until when the kept estimate stays the kept one, as long as Slurm tells the same; nothing if it does not even now.
pub(crate) fn estimate_holds_until(
    known: Option<Timestamp>,
    told: Option<Timestamp>,
    now: Timestamp,
) -> Option<Timestamp> {
    if estimated_start(known, told, now) != known {
        return None;
    }
    // What lies in the past will still do so.
    let Some(known) = known else { return Some(Timestamp::MAX_UTC) };
    let told = told?;
    let off = (told - known).abs();
    let play_ends = if off <= LEAST_PLAY { told } else { told - off * PLAY };
    Some(known.min(told).min(play_ends))
}

/// A sentence about a job in `state`, which waits for `reason`.
pub(crate) fn pending_message(state: &SlurmState, reason: &str) -> String {
    let (shown, known) = (shortened(reason), explained(state, reason));
    if is_readied(state) {
        return "The nodes are being made ready.".to_owned();
    }
    match known {
        Some(known) if known.holder == Holder::Hold => {
            format!("Held on the cluster ({shown}): {}; it has to be released there.", known.meaning)
        }
        _ if matches!(reason, "None" | "") => "Waiting in Slurm's queue.".to_owned(),
        Some(Explanation { meaning, outlook: Outlook::Hopeless, .. }) => {
            format!("Waiting in Slurm's queue: {meaning}, so it can never start; cancel it ({shown}).")
        }
        Some(known) => format!("Waiting in Slurm's queue: {} ({shown}).", known.meaning),
        None => format!("Waiting in Slurm's queue: {shown}."),
    }
}

fn explained(state: &SlurmState, reason: &str) -> Option<Explanation> {
    if is_readied(state) {
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
        meaning: Cow::Borrowed("it is on hold"),
        advice: "`scontrol release ID` lets it go; an administrator's hold only an administrator can end.",
        outlook: Outlook::NeedsAction,
    }))
}

fn is_readied(state: &SlurmState) -> bool {
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
    #[test_case("Resources" => "Waiting in Slurm's queue: what it asks for is in use, and it is next in line (Resources).")]
    #[test_case("JobHeldAdmin" => "Held on the cluster (JobHeldAdmin): an administrator has put it on hold; it has to be released there.")]
    #[test_case("launch failed requeued held" => "Held on the cluster (launch failed requeued held): its launch has failed, so Slurm has put it on hold; it has to be released there.")]
    #[test_case("something new, held" => "Held on the cluster (something new, held): it is on hold; it has to be released there.")]
    #[test_case("DependencyNeverSatisfied" => "Waiting in Slurm's queue: what it depends on has failed, so it can never start; cancel it (DependencyNeverSatisfied).")]
    #[test_case("AssocGrpGRES" => "Waiting in Slurm's queue: the running jobs of its association (account and user) have all the GPUs or other generic resources that it allows them together (AssocGrpGRES).")]
    #[test_case("PlanetsNotAligned" => "Waiting in Slurm's queue: PlanetsNotAligned.")]
    fn a_reason_is_a_sentence(reason: &str) -> String {
        pending_message(&SlurmState::Pending, reason)
    }

    #[test]
    fn a_reason_that_nobody_knows_is_shown_as_it_is_and_not_at_any_length() {
        let message = pending_message(&SlurmState::Pending, &"ä".repeat(1000));
        assert_eq!(message.chars().count(), "Waiting in Slurm's queue: ….".chars().count() + SHOWN);
    }

    #[test]
    fn a_state_of_waiting_counts_more_than_its_reason() {
        assert_eq!(explained(&SlurmState::RequeueHold, "None").unwrap().holder, Holder::Hold);
        assert_eq!(explained(&SlurmState::Configuring, "Priority").unwrap().holder, Holder::Slurm);
    }

    #[test_case(None, Some(30) => Some(30) ; "the first one is kept")]
    #[test_case(Some(30), Some(33) => Some(30) ; "a tenth of what is left is no news")]
    #[test_case(Some(30), Some(36) => Some(36) ; "more is")]
    #[test_case(Some(2), Some(3) => Some(2) ; "nor is a minute")]
    #[test_case(Some(30), None => None ; "Slurm has none any more")]
    #[test_case(Some(30), Some(-1) => None ; "what has gone by is none")]
    #[test_case(Some(-1), Some(1) => Some(1) ; "one that has gone by is given up")]
    fn an_estimate_moves_only_when_it_has_moved_far(known: Option<i64>, told: Option<i64>) -> Option<i64> {
        estimated_start(known.map(at), told.map(at), T0).map(|at| (at - T0).num_minutes())
    }

    #[test]
    fn the_wait_goes_on_until_the_job_begins_and_counts_anew_after_a_requeue() {
        let mut job = submitted_job();
        let wait = |job: &Job| queue_wait(job, Some(at(30))).map(|wait| wait.num_minutes());
        assert_eq!(wait(&job), Some(30));
        job.attempt.as_mut().unwrap().queued_since = Some(at(20));
        assert_eq!(wait(&job), Some(10));
        job.phase = Phase::Running;
        job.attempt.as_mut().unwrap().started_at = Some(at(25));
        assert_eq!(wait(&job), Some(5));
    }
}
