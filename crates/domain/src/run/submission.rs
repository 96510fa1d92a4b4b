//! What to do next for a job that is due, and what the answer to a submission means.
//!
//! Every answer has one of three shapes: it surely had an effect, it surely had none, or nobody knows. The
//! third is a phase of its own ([`Phase::SubmitUncertain`]) and never leads to a second submission before
//! absence is proved.

mod missing;

use chrono::TimeDelta;
use remote::{How, SubmitAnswer};
use slurm::{Failure, FailureClass, SlurmJobId};

use crate::{
    clock::Timestamp,
    job::{
        attempt::{Attempt, Outcome, Verdict},
        status::{Phase, Source, Status},
        stored::{DesiredState, Job},
        submit_fence::LOOK_AGAIN,
    },
    run::{
        exclusion::relax_exclusions,
        observe::{Graces, outlives_its_final_status},
    },
};

/// The one thing that a due job needs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Step {
    /// Nothing is on the cluster: end it here.
    EndLocally,
    /// Nothing is on the cluster: leave it at rest here.
    PauseLocally,
    Submit,
    /// A submission's answer was lost: look for it.
    Locate,
    Cancel,
    /// Slurm has put it back into its queue: find out why, and keep it away from a node that failed.
    ExplainRequeue,
    /// It waits, and is kept away from nodes that it may use again.
    RelaxExclusions,
    /// Slurm is through with it: read its last words.
    Conclude,
    /// Its owner wants it gone: remove what it left on the cluster, then the job.
    Purge,
    /// Nothing to do; the wake-up was for an earlier state.
    Rest,
}

/// What a due job needs, from where it stands and what its owner wants.
pub fn plan(job: &Job, graces: &Graces, now: Timestamp) -> Step {
    let unanswered = job.attempt.as_ref().is_some_and(Attempt::is_unanswered);
    let unexplained = job.attempt.as_ref().is_some_and(|attempt| attempt.requeue_unexplained);
    match (job.phase, job.desired) {
        (Phase::Finishing, _) => Step::Conclude,
        (Phase::SubmitUncertain, _) => Step::Locate,
        (Phase::Submitting, DesiredState::Cancel | DesiredState::Pause | DesiredState::Delete)
            if unanswered =>
        {
            Step::Locate
        }
        (Phase::Ended, DesiredState::Delete) => Step::Purge,
        // It has said its last word and holds its nodes all the same.
        (Phase::Running, DesiredState::Run) if outlives_its_final_status(job, graces, now) => Step::Cancel,
        // It has given no sign of life for too long.
        (Phase::Running, DesiredState::Run) if job.kill_reason.is_some() => Step::Cancel,
        (Phase::InQueue, DesiredState::Run) if unexplained => Step::ExplainRequeue,
        (Phase::InQueue, DesiredState::Run) if relax_exclusions(job, &graces.retry, now).is_some() => {
            Step::RelaxExclusions
        }
        (Phase::Ended, _)
        | (Phase::InQueue | Phase::Running | Phase::Suspended, DesiredState::Run)
        | (Phase::Paused, DesiredState::Pause) => Step::Rest,
        (
            Phase::InQueue | Phase::Running | Phase::Suspended,
            DesiredState::Cancel | DesiredState::Pause | DesiredState::Delete,
        ) => Step::Cancel,
        (
            Phase::Queued
            | Phase::CheckingInputs
            | Phase::ConvertingImage
            | Phase::Staging
            | Phase::Submitting
            | Phase::RetryWait
            | Phase::Paused,
            wanted,
        ) => match wanted {
            DesiredState::Run => Step::Submit,
            DesiredState::Pause => Step::PauseLocally,
            DesiredState::Cancel | DesiredState::Delete => Step::EndLocally,
        },
    }
}

/// A job after a step, and when it is due again.
#[derive(Debug, Clone)]
pub struct Transition {
    pub job: Job,
    pub due_at: Option<Timestamp>,
}

/// How a submission's command came back.
#[derive(Debug, Clone, Copy)]
pub enum Sent<'a> {
    Answered(&'a SubmitAnswer),
    /// The command surely never ran.
    NotSent {
        why: &'a str,
    },
    /// The command may have run; its answer is lost.
    Lost {
        why: &'a str,
    },
}

/// A refused connection or a full queue is asked again after 2, 4, 8 … seconds, at most this long.
pub(crate) const LONGEST_SETBACK: TimeDelta = TimeDelta::minutes(5);

/// The job after its submission was sent. `before` is the attempt as it was before that.
///
/// What surely had no effect says nothing about an earlier submission of the same attempt that nobody has
/// answered for: that one has to be looked for.
pub fn sent(job: &Job, before: Option<&Attempt>, outcome: Sent<'_>, now: Timestamp) -> Transition {
    let mut job = job.clone();
    let unanswered = before.is_some_and(Attempt::is_unanswered);
    let due_at = match outcome {
        // An earlier command that was never heard of may be about to submit all the same.
        Sent::Answered(
            SubmitAnswer::Skipped | SubmitAnswer::MissingInputs { .. } | SubmitAnswer::StageFailed(_),
        )
        | Sent::NotSent { .. }
            if unanswered =>
        {
            Some(uncertain(&mut job, "the service was interrupted", now))
        }
        Sent::Answered(SubmitAnswer::Submitted { id, how, .. }) => submitted(&mut job, *id, *how, now),
        Sent::Answered(SubmitAnswer::Refused { failure, .. } | SubmitAnswer::StageFailed(failure)) => {
            refused(&mut job, failure, now)
        }
        Sent::Answered(SubmitAnswer::MissingInputs { paths }) => {
            end(&mut job, Status::Error, missing::sentence(paths), now);
            None
        }
        Sent::Answered(SubmitAnswer::Skipped) => {
            clear(&mut job);
            Some(now)
        }
        Sent::Answered(SubmitAnswer::Uncertain) => Some(uncertain(&mut job, "no answer came back", now)),
        Sent::Lost { why } => Some(uncertain(&mut job, why, now)),
        Sent::NotSent { why } => {
            Some(set_back(&mut job, &format!("The cluster cannot be reached: {why}"), now))
        }
    };
    Transition { job, due_at }
}

/// The job has a Slurm id. A wish to cancel it is carried out at once.
fn submitted(job: &mut Job, id: SlurmJobId, how: How, now: Timestamp) -> Option<Timestamp> {
    if let Some(attempt) = &mut job.attempt {
        attempt.slurm_id = Some(id);
        attempt.submitted_at = Some(now);
        attempt.setbacks = 0;
    }
    job.submitted_at = job.submitted_at.or(Some(now));
    job.finishing_since = None;
    job.phase = Phase::InQueue;
    job.source = Source::Squeue;
    job.observed_at = Some(now);
    job.message = match (job.desired, how) {
        (DesiredState::Cancel | DesiredState::Delete, _) => format!("Canceling: Slurm has it as job {id}."),
        (DesiredState::Pause, _) => format!("Pausing: Slurm has it as job {id}."),
        (DesiredState::Run, How::New) => format!("Submitted to Slurm as job {id}; waiting for resources."),
        (DesiredState::Run, How::Replay | How::Adopted) => {
            format!("Slurm had accepted the submission already, as job {id}; waiting for resources.")
        }
    };
    match job.desired {
        DesiredState::Cancel | DesiredState::Pause | DesiredState::Delete => Some(now),
        DesiredState::Run => None,
    }
}

fn refused(job: &mut Job, failure: &Failure, now: Timestamp) -> Option<Timestamp> {
    match failure.class {
        FailureClass::Permanent if has_exclusions(job) => {
            let excluded = job.attempt.as_mut().map(|attempt| std::mem::take(&mut attempt.excluded));
            job.allow_again(&excluded.unwrap_or_default());
            clear(job);
            "Slurm finds no place without the nodes that failed; trying with all of them."
                .clone_into(&mut job.message);
            Some(now)
        }
        FailureClass::Permanent => {
            end(job, Status::Error, format!("Slurm refuses the job: {}", failure.excerpt), now);
            None
        }
        FailureClass::Ambiguous => Some(uncertain(job, &failure.excerpt, now)),
        FailureClass::Capacity => {
            clear(job);
            job.message = format!("Slurm takes no more jobs at the moment: {}", failure.excerpt);
            Some(now + TimeDelta::minutes(1))
        }
        FailureClass::NotDone | FailureClass::Infra => {
            Some(set_back(job, &format!("The cluster could not take the job yet: {}", failure.excerpt), now))
        }
    }
}

/// Whether it may be our own exclusion of nodes that leaves no place for the job.
fn has_exclusions(job: &Job) -> bool {
    job.attempt.as_ref().is_some_and(|attempt| !attempt.excluded.is_empty())
}

fn set_back(job: &mut Job, why: &str, now: Timestamp) -> Timestamp {
    clear(job);
    let setbacks = job.attempt.as_mut().map_or(1, |attempt| {
        attempt.setbacks = attempt.setbacks.saturating_add(1);
        attempt.setbacks
    });
    let wait = TimeDelta::seconds(1_i64 << setbacks.min(10)).min(LONGEST_SETBACK);
    job.message = format!("{why} Trying again in {} s.", wait.num_seconds());
    now + wait
}

/// What was sent had no effect.
fn clear(job: &mut Job) {
    if let Some(attempt) = &mut job.attempt {
        attempt.fence.clear();
    }
}

fn uncertain(job: &mut Job, why: &str, now: Timestamp) -> Timestamp {
    job.phase = Phase::SubmitUncertain;
    job.message =
        format!("The submission's answer was lost ({why}); looking for it before anything is sent again.");
    now
}

/// What a look for a lost submission found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Located {
    Found(SlurmJobId),
    /// Nothing of it has ever begun on the cluster, and nothing of it will.
    Unbegun,
    /// The controller answered, and there is no trace anywhere.
    Absent,
    /// Somebody who would have to know did not answer.
    Unclear,
}

/// The job after a look for its lost submission.
///
/// Until it is proved that there is nothing, by [`SubmitFence`](crate::SubmitFence)' rule, nothing is sent again.
pub fn located(job: &Job, found: Located, now: Timestamp) -> Transition {
    let mut job = job.clone();
    let due_at = match found {
        Located::Found(id) => submitted(&mut job, id, How::Adopted, now),
        Located::Unbegun => absent(&mut job, now),
        Located::Absent if job.attempt.as_mut().is_none_or(|attempt| attempt.fence.are_absent(now)) => {
            absent(&mut job, now)
        }
        Located::Absent | Located::Unclear => Some(now + LOOK_AGAIN),
    };
    Transition { job, due_at }
}

/// Nothing of the job is on the cluster.
fn absent(job: &mut Job, now: Timestamp) -> Option<Timestamp> {
    clear(job);
    match job.desired {
        DesiredState::Cancel | DesiredState::Delete => {
            end(job, Status::Canceled, "Canceled before it reached Slurm.".to_owned(), now);
            None
        }
        DesiredState::Pause => {
            rest_locally(job, now);
            None
        }
        DesiredState::Run => {
            job.phase = Phase::Submitting;
            "The submission never reached Slurm; sending it again.".clone_into(&mut job.message);
            Some(now)
        }
    }
}

/// Leaves the job at rest, until its owner resumes it.
pub(crate) fn rest(job: &mut Job, message: String) {
    job.status = Status::Paused;
    job.phase = Phase::Paused;
    job.message = message;
    job.pending_reason = None;
    job.missing_since = None;
    job.finishing_since = None;
}

/// Leaves a job at rest that Slurm has never had. Its attempt is over: what Slurm hears of it later than any bound is not the
/// job's own when it is resumed.
fn rest_locally(job: &mut Job, now: Timestamp) {
    let why = "Paused before it reached Slurm.".to_owned();
    close_attempt(
        job,
        Verdict { at: now, outcome: Outcome::Paused, why: why.clone(), rule: None, line: None },
    );
    rest(job, why);
}

/// Ends the job; only its owner can send it again.
pub(crate) fn end(job: &mut Job, status: Status, message: String, now: Timestamp) {
    let outcome = if status == Status::Done {
        Outcome::Done
    } else if status == Status::Canceled {
        Outcome::Canceled
    } else {
        Outcome::Error
    };
    close_attempt(job, Verdict { at: now, outcome, why: message.clone(), rule: None, line: None });
    job.status = status;
    job.phase = Phase::Ended;
    job.message = message;
    job.pending_reason = None;
    job.missing_since = None;
    job.finishing_since = None;
    job.finished_at = Some(now);
}

/// Keeps what became of the newest attempt, if there is one and nothing was said of it yet.
pub(crate) fn close_attempt(job: &mut Job, verdict: Verdict) {
    if let Some(attempt) = &mut job.attempt {
        attempt.verdict.get_or_insert(verdict);
    }
}

impl Job {
    /// The job, at rest before anything of it was on the cluster.
    #[must_use]
    pub fn paused_locally(&self, now: Timestamp) -> Self {
        let mut job = self.clone();
        rest_locally(&mut job, now);
        job
    }

    /// The job, canceled before anything of it was on the cluster.
    #[must_use]
    pub fn canceled_locally(&self, now: Timestamp) -> Self {
        let mut job = self.clone();
        end(&mut job, Status::Canceled, "Canceled before it reached Slurm.".to_owned(), now);
        job
    }
}

#[cfg(test)]
mod tests;
