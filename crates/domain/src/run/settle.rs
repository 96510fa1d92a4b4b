//! What follows from the end of an attempt: the job ends, rests, or goes again.

use remote::Markers;
use slurm::{SlurmJobId, SlurmState};

use crate::{
    clock::Timestamp,
    job::{
        attempt::{Attempt, Outcome, Verdict},
        status::{Phase, Status},
        stored::{DesiredState, Job},
    },
    run::{
        conclude::{Ending, Findings},
        diagnosis::{Cause, ENDED_BY_TERM, Evidence, diagnose},
        observe::{Graces, has_never_started},
        retry::{PastFailure, RetryDecision, decide_retry},
        submission::{close_attempt, end, rest},
    },
};

/// What follows from the way the attempt ended, and from what its owner wants.
pub(crate) fn settle(
    mut job: Job,
    status: Status,
    message: String,
    found: &Findings<'_>,
    graces: &Graces,
    now: Timestamp,
) -> Ending {
    match (status, job.desired) {
        (Status::Canceled, DesiredState::Pause) => pause(job, now),
        (Status::Error, DesiredState::Run | DesiredState::Pause) if may_be_retried(&job, found) => {
            retry_or_end(job, message, found, graces, now)
        }
        _ => {
            end(&mut job, status, message, now);
            Ending::Ended(job)
        }
    }
}

fn pause(mut job: Job, now: Timestamp) -> Ending {
    let why = "Paused by its owner.".to_owned();
    close_attempt(&mut job, Verdict { at: now, outcome: Outcome::Paused, why, rule: None, line: None });
    rest(&mut job, "Paused; resuming it goes on from its newest checkpoint.".to_owned());
    Ending::Paused(job)
}

/// Whether the way the attempt ended leaves room for a fault of the infrastructure: a time limit and a job that
/// nobody can find any more do not.
fn may_be_retried(job: &Job, found: &Findings<'_>) -> bool {
    match job.attempt.as_ref().and_then(|attempt| attempt.slurm_state.as_ref()) {
        Some(SlurmState::Timeout | SlurmState::Cancelled | SlurmState::Revoked | SlurmState::Preempted) => {
            false
        }
        Some(_) => true,
        // Slurm has forgotten it. Its own exit marker says that it failed; or it was never started, and is not to be any more.
        None => {
            job.attempt.as_ref().is_some_and(|attempt| attempt.exit.is_some()) || was_never_started(found)
        }
    }
}

/// Whether no Slurm job has ever begun to run the attempt. The mark that forbids it was left before these were looked for, so
/// none will.
fn was_never_started(found: &Findings<'_>) -> bool {
    let Markers { exit, started, run_claim, .. } = found.markers;
    found.readable && exit.is_none() && started.is_none() && run_claim.is_none()
}

fn retry_or_end(
    mut job: Job,
    message: String,
    found: &Findings<'_>,
    graces: &Graces,
    now: Timestamp,
) -> Ending {
    let Some(attempt) = job.attempt.clone() else {
        end(&mut job, Status::Error, message, now);
        return Ending::Ended(job);
    };
    let logs = [found.err_tail, found.out_tail, found.role_tails];
    let mark = found.markers.exit.filter(|exit| attempt.slurm_id == Some(exit.slurm_id));
    let diagnosis = diagnose(&Evidence {
        state: attempt.slurm_state.as_ref(),
        exit: attempt.exit,
        nodes: attempt.nodes.as_deref().unwrap_or_default(),
        sick: found.sick,
        logs: &logs,
        never_began: match attempt.slurm_state {
            Some(_) => found.readable && !has_begun(found.markers, &attempt),
            None => was_never_started(found),
        },
        terminated: mark.is_some_and(|exit| exit.code == ENDED_BY_TERM),
        marked_its_end: mark.is_some(),
        // A newline parts the logs of roles.
        silent: found.readable
            && job.progress.word.is_none()
            && logs.iter().all(|log| log.trim_ascii().is_empty()),
    });
    if let Some(found) = diagnosis.as_ref().filter(|found| found.cause == Cause::Infrastructure) {
        job.failures.push(PastFailure {
            attempt: attempt.no.get(),
            slurm_id: attempt.slurm_id,
            signature: found.signature.clone(),
            nodes: found.nodes.clone(),
            at: now,
            allowed_again: false,
        });
    }
    let (rule, line) = diagnosis.clone().map_or((None, None), |found| (Some(found.signature), found.line));
    let verdict = |outcome, why: &str| Verdict { at: now, outcome, why: why.to_owned(), rule, line };
    match decide_retry(&job, diagnosis.as_ref(), &graces.retry, found.spare, now) {
        RetryDecision::No { why } => {
            close_attempt(&mut job, verdict(Outcome::Error, &why));
            end(&mut job, Status::Error, with_why(&message, &why), now);
            Ending::Ended(job)
        }
        // It would be off the cluster by now if the infrastructure had not been faster.
        RetryDecision::Yes { .. } if job.desired == DesiredState::Pause => pause(job, now),
        RetryDecision::Yes { wait, why } => {
            close_attempt(&mut job, verdict(Outcome::Retried, &why));
            job.retry_count += 1;
            job.status = Status::Pending;
            job.phase = Phase::RetryWait;
            job.message = format!("Attempt {} failed. {why}", attempt.no);
            job.pending_reason = None;
            job.missing_since = None;
            job.finishing_since = None;
            Ending::Again { job, due_at: now + wait }
        }
    }
}

/// Whether the script of the job's last run has come as far as its marks: whoever is ended before that has left none of its
/// program's doing.
fn has_begun(markers: &Markers, attempt: &Attempt) -> bool {
    let ours = |id: SlurmJobId| attempt.slurm_id == Some(id);
    let [start, end] = [attempt.started_at, attempt.ended_at].map(|at| at.map(|at| at.timestamp()));
    let started = markers.started.as_ref().is_some_and(|mark| ours(mark.slurm_id));
    markers.exit.is_some_and(|exit| ours(exit.slurm_id))
        || started && !has_never_started(attempt, markers, start, end)
}

/// The sentence about another attempt goes behind the first line: after it may come the end of a log.
fn with_why(message: &str, why: &str) -> String {
    match message.split_once(" Last lines of ") {
        Some((sentence, log)) => format!("{sentence} {why} Last lines of {log}"),
        None => format!("{message} {why}"),
    }
}
