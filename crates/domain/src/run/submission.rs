//! The outcome of a submission.
//!
//! A submission certainly had an effect, certainly had none, or its outcome is unknown. The last case has a phase of its
//! own ([`Phase::SubmitUncertain`]): the job is not submitted again before the absence of the lost submission is proven.

use std::fmt::Write;

use chrono::TimeDelta;
use remote::{How, SubmitAnswer};
use slurm::{Failure, FailureClass, RemotePath, SlurmJobId};

use crate::{
    clock::Timestamp,
    job::{
        attempt::Attempt,
        status::{Phase, Source, Status},
        stored::{DesiredState, Job},
        submit_fence::LOOKUP_INTERVAL,
    },
    run::{plan::Transition, sentence::sentence},
};

/// How a submission command ended.
#[derive(Debug, Clone, Copy)]
pub enum SubmitOutcome<'a> {
    Answered(&'a SubmitAnswer),
    /// The command certainly did not run.
    NotRun {
        why: &'a str,
    },
    /// The command may have run; its reply is lost.
    Lost {
        why: &'a str,
    },
}

/// What the outcome of a submission means.
pub(crate) enum Effect<'a> {
    Submitted(SlurmJobId, How),
    Refused(&'a Failure),
    MissingInputs(&'a [RemotePath]),
    /// A later submission has overtaken this one.
    Skipped,
    Uncertain(&'a str),
    Unreachable(&'a str),
}

impl<'a> SubmitOutcome<'a> {
    /// `uncertain`: the outcome of an earlier submission of the same attempt is unknown. If this one certainly had no
    /// effect, that one may still have, and has to be looked for.
    pub(crate) fn effect(self, uncertain: bool) -> Effect<'a> {
        match self {
            Self::Answered(
                SubmitAnswer::Skipped | SubmitAnswer::MissingInputs { .. } | SubmitAnswer::StageFailed(_),
            )
            | Self::NotRun { .. }
                if uncertain =>
            {
                Effect::Uncertain(INTERRUPTED)
            }
            Self::Answered(SubmitAnswer::Submitted { id, how, .. }) => Effect::Submitted(*id, *how),
            Self::Answered(SubmitAnswer::Refused { failure, .. } | SubmitAnswer::StageFailed(failure)) => {
                match failure.class {
                    FailureClass::Ambiguous => Effect::Uncertain(&failure.excerpt),
                    FailureClass::Permanent
                    | FailureClass::Capacity
                    | FailureClass::NotDone
                    | FailureClass::Infra => Effect::Refused(failure),
                }
            }
            Self::Answered(SubmitAnswer::MissingInputs { paths }) => Effect::MissingInputs(paths),
            Self::Answered(SubmitAnswer::Skipped) => Effect::Skipped,
            Self::Answered(SubmitAnswer::Uncertain) => Effect::Uncertain("no reply"),
            Self::Lost { why } => Effect::Uncertain(why),
            Self::NotRun { why } => Effect::Unreachable(why),
        }
    }
}

/// Why a submission is uncertain when the service was restarted during it.
pub(crate) const INTERRUPTED: &str = "the service was interrupted";

/// The wait before a rejected submission is retried because the site is full.
pub(crate) const CAPACITY_WAIT: TimeDelta = TimeDelta::minutes(1);

/// Counts a setback, and returns the wait after so many in a row: 2, 4, 8 … seconds, at most five minutes.
pub(crate) fn setback_wait(setbacks: Option<&mut u32>) -> TimeDelta {
    let mut first = 0;
    let setbacks = setbacks.unwrap_or(&mut first);
    *setbacks = setbacks.saturating_add(1);
    TimeDelta::seconds(1_i64 << (*setbacks).min(10)).min(TimeDelta::minutes(5))
}

/// The job after its submission. `before` is the attempt as it was before that.
pub fn after_submit(
    job: &Job,
    before: Option<&Attempt>,
    outcome: SubmitOutcome<'_>,
    now: Timestamp,
) -> Transition {
    let mut job = job.clone();
    let due_at = match outcome.effect(before.is_some_and(Attempt::is_uncertain)) {
        Effect::Submitted(id, how) => submitted(&mut job, id, how, now),
        Effect::Refused(failure) => refused(&mut job, failure, now),
        Effect::MissingInputs(paths) => {
            job.end(Status::Error, missing_inputs(paths), now);
            None
        }
        Effect::Skipped => {
            clear(&mut job);
            Some(now)
        }
        Effect::Uncertain(why) => {
            job.phase = Phase::SubmitUncertain;
            job.message =
                format!("The reply to the submission was lost ({why}); checking whether Slurm has the job.");
            Some(now)
        }
        Effect::Unreachable(why) => {
            Some(set_back(&mut job, &format!("The cluster is unreachable: {why}"), now))
        }
    };
    job.after_piece(due_at, now)
}

/// Slurm has the job. A desired cancellation is carried out at once.
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
        (DesiredState::Cancel | DesiredState::Delete, _) => format!("Canceling Slurm job {id}."),
        (DesiredState::Pause, _) => format!("Pausing: canceling Slurm job {id}."),
        (DesiredState::Run, How::New) => format!("Submitted to Slurm as job {id}; waiting for resources."),
        (DesiredState::Run, How::Replay | How::Adopted) => {
            format!("Slurm had already accepted the submission as job {id}; waiting for resources.")
        }
    };
    (job.desired != DesiredState::Run).then_some(now)
}

fn refused(job: &mut Job, failure: &Failure, now: Timestamp) -> Option<Timestamp> {
    let excluded = job.attempt.as_ref().map(|attempt| attempt.excluded.clone()).unwrap_or_default();
    match failure.class {
        // Our own exclusion of nodes may be the reason that Slurm finds no place for the job.
        FailureClass::Permanent if !excluded.is_empty() => {
            job.allow_again(&excluded);
            if let Some(attempt) = &mut job.attempt {
                attempt.excluded.clear();
            }
            clear(job);
            "Slurm finds no place for the job without the excluded nodes; submitting it without exclusions."
                .clone_into(&mut job.message);
            Some(now)
        }
        FailureClass::Permanent => {
            job.end(Status::Error, format!("Slurm rejected the job: {}", failure.excerpt), now);
            None
        }
        FailureClass::Capacity => {
            clear(job);
            job.message = format!("Slurm accepts no more jobs at the moment: {}", failure.excerpt);
            Some(now + CAPACITY_WAIT)
        }
        FailureClass::NotDone | FailureClass::Infra | FailureClass::Ambiguous => Some(set_back(
            job,
            &format!("The cluster could not accept the job yet: {}", failure.excerpt),
            now,
        )),
    }
}

fn set_back(job: &mut Job, why: &str, now: Timestamp) -> Timestamp {
    clear(job);
    let wait = setback_wait(job.attempt.as_mut().map(|attempt| &mut attempt.setbacks));
    job.message = format!("{} Retrying in {} s.", sentence(why), wait.num_seconds());
    now + wait
}

/// The submission had no effect.
fn clear(job: &mut Job) {
    if let Some(attempt) = &mut job.attempt {
        attempt.fence.clear();
    }
}

/// The result of a lookup for a lost submission.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Lookup {
    Found(SlurmJobId),
    /// The submission never began on the cluster, and cannot begin any more.
    NeverBegan,
    /// The controller answered, and there is no trace of the submission.
    Absent,
    /// A system that would list it did not answer.
    Unclear,
}

/// The job after a lookup for its lost submission.
///
/// It is submitted again only when the [`SubmitFence`](crate::SubmitFence) has proven that there is no other submission.
pub fn after_lookup(job: &Job, found: Lookup, now: Timestamp) -> Transition {
    let mut job = job.clone();
    let due_at = match found {
        Lookup::Found(id) => submitted(&mut job, id, How::Adopted, now),
        Lookup::NeverBegan => absent(&mut job, now),
        Lookup::Absent if job.attempt.as_mut().is_none_or(|attempt| attempt.fence.are_absent(now)) => {
            absent(&mut job, now)
        }
        Lookup::Absent | Lookup::Unclear => Some(now + LOOKUP_INTERVAL),
    };
    job.after_piece(due_at, now)
}

/// Slurm does not have the job.
fn absent(job: &mut Job, now: Timestamp) -> Option<Timestamp> {
    clear(job);
    match job.desired {
        DesiredState::Cancel | DesiredState::Delete => *job = job.canceled_locally(now),
        DesiredState::Pause => *job = job.paused_locally(now),
        DesiredState::Run => {
            job.phase = Phase::Submitting;
            "The submission did not reach Slurm; submitting the job again.".clone_into(&mut job.message);
            return Some(now);
        }
    }
    None
}

/// The message names all paths up to this length.
const MOST_BYTES: usize = 8000;

/// The message of a job whose inputs, data sets or image are missing.
fn missing_inputs(paths: &[RemotePath]) -> String {
    let mut text = match paths.len() {
        1 => "A path that the job needs does not exist on the cluster, or is not readable: ".to_owned(),
        count => {
            format!("{count} paths that the job needs do not exist on the cluster, or are not readable: ")
        }
    };
    for (index, path) in paths.iter().enumerate() {
        if index > 0 && text.len() + path.as_str().len() > MOST_BYTES {
            let _ = write!(text, " and {} more", paths.len() - index);
            break;
        }
        let comma = if index > 0 { ", " } else { "" };
        let _ = write!(text, "{comma}{path}");
    }
    text.push_str(
        ". The job was not submitted. Put them there and retry the job, or submit it with other paths. Paths that only the \
         nodes have belong below a directory of the cluster's setting node_local_paths.",
    );
    text
}

#[cfg(test)]
mod tests;
