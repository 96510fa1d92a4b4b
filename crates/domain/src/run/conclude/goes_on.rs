//! Whether the job goes on after its attempt has ended.

use slurm::NodeName;

use super::{Ending, failure::first_error, verdict};
use crate::{
    clock::Timestamp,
    job::{
        attempt::{Outcome, PastFailure, Verdict},
        status::Status,
        stored::{DesiredState, Job},
    },
    run::{
        diagnosis::{Cause, Diagnosis},
        graces::Graces,
        retry::{PlannedEnd, RetryDecision, decide_restart, decide_retry},
        task::Task,
    },
};

/// An attempt that was queued ahead has left without a run.
pub(super) fn not_needed(mut job: Job, now: Timestamp) -> Ending {
    match job.desired {
        DesiredState::Run => {
            let why = "Its script could not tell whether the job goes on. The service has decided that, and submits the job again.";
            job.await_ahead(
                Verdict::new(Outcome::Retried, why, now),
                format!("The attempt did not run. {why}"),
            );
            Ending::Retry { job, due_at: now }
        }
        DesiredState::Pause => paused(job, now),
        DesiredState::Cancel | DesiredState::Delete => {
            job.end(Status::Canceled, "Canceled.".to_owned(), now);
            Ending::Ended(job)
        }
    }
}

pub(super) fn paused(mut job: Job, now: Timestamp) -> Ending {
    let message = if job.is_training() {
        "Paused; the training resumes from its newest checkpoint."
    } else {
        "Paused; when it is resumed, it starts over."
    };
    job.pause("Paused by its owner.", message.to_owned(), now);
    Ending::Paused(job)
}

/// After an end for which the job's restart policy is made.
pub(super) fn restart_or_end(
    mut job: Job,
    task: &Task<'_>,
    ended: &verdict::Verdict,
    end: &PlannedEnd,
    graces: &Graces,
    now: Timestamp,
) -> Ending {
    if job.desired == DesiredState::Pause {
        return paused(job, now);
    }
    let attempt = task.attempt;
    if end.is_short {
        let signature = "short-run".to_owned();
        job.failures.push(PastFailure::of(attempt, job.run.task, signature, Vec::new(), now));
    }
    match decide_restart(&job, end, &graces.retry) {
        RetryDecision::No { why } => {
            job.close_attempt(Verdict::new(Outcome::Error, &why, now));
            let message = ended.message(Some((&why, None)), job.run.failure.as_ref());
            job.end(Status::Error, message, now);
            Ending::Ended(job)
        }
        RetryDecision::Yes { wait, why } => {
            let message = format!("Attempt {} ended. {why}", attempt.no.get());
            let verdict = Verdict::new(Outcome::Retried, &why, now);
            // After a short run its script leaves.
            if end.is_short {
                job.await_retry(verdict, message);
            } else {
                job.await_ahead(verdict, message);
            }
            Ending::Retry { job, due_at: now + wait }
        }
    }
}

pub(super) fn retry_or_end(
    mut job: Job,
    task: &Task<'_>,
    ended: &verdict::Verdict,
    diagnosis: Option<Diagnosis>,
    spare: Option<usize>,
    graces: &Graces,
    now: Timestamp,
) -> Ending {
    let attempt_no = task.attempt.no.get();
    if let Some(found) = diagnosis.as_ref().filter(|found| found.cause != Cause::User) {
        let (signature, nodes) = (found.signature.clone(), nodes_at_fault(&job, found));
        job.failures.push(PastFailure::of(task.attempt, job.run.task, signature, nodes, now));
    }
    let decision = decide_retry(&job, diagnosis.as_ref(), &graces.retry, spare, now);
    let (rule, line) = diagnosis.map_or((None, None), |found| (Some(found.signature), found.line));
    let verdict =
        |outcome, why: &str| Verdict { rule, line: line.clone(), ..Verdict::new(outcome, why, now) };
    match decision {
        RetryDecision::No { why } => {
            job.close_attempt(verdict(Outcome::Error, &why));
            let message = ended.message(Some((&why, line.as_deref())), job.run.failure.as_ref());
            job.end(Status::Error, message, now);
            Ending::Ended(job)
        }
        // The infrastructure failed the job while the service was about to cancel it.
        RetryDecision::Yes { .. } if job.desired == DesiredState::Pause => paused(job, now),
        RetryDecision::Yes { wait, why } => {
            let quoted = line.as_ref().map_or(String::new(), |line| format!(" The log says: {line}"));
            let first = first_error(job.run.failure.as_ref(), line.as_deref());
            let first = first.map_or(String::new(), |first| format!(" {first}"));
            let message = format!("Attempt {attempt_no} failed. {why}{quoted}{first}");
            job.await_retry(verdict(Outcome::Retried, &why), message);
            Ending::Retry { job, due_at: now + wait }
        }
    }
}

/// The nodes to exclude. A cached file is at fault the first time. Before the next attempt it was seen whole or made again, so
/// the second time the node is.
fn nodes_at_fault(job: &Job, found: &Diagnosis) -> Vec<NodeName> {
    let is_first = || job.failures.iter().all(|past| past.signature != found.signature);
    if found.cause == Cause::CachedFile && is_first() { Vec::new() } else { found.nodes.clone() }
}
