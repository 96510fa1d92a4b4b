//! How a job ended: the only module that decides Done, Error or Canceled for a job that ran.
//!
//! [`conclude`] waits until the evidence is complete, reaches a verdict (`verdict`), decides about a retry
//! ([`retry`](super::retry)), and returns the transition.

mod evidence;
mod failure;
mod goes_on;
mod pace;
mod results;
mod verdict;

use chrono::TimeDelta;
use remote::{EndedWith, LogErrors, Markers, StatusChunk};
use slurm::{SlurmJobId, SlurmState};

use crate::{
    clock::Timestamp,
    job::{
        results::TaskResult,
        run::Run,
        status::Status,
        stored::{DesiredState, Job},
    },
    run::{
        diagnosis::{Cause, Diagnosis, Evidence, ImageSource, UnhealthyNode, diagnose},
        evidence::{ENDED_BY_TERM, exit_record, has_never_started, start_marker},
        graces::{Graces, SLURMD_TIMEOUT},
        reports,
        retry::planned_end,
        status_lines::{absorb_rest, absorb_status, is_held_back},
        task::Task,
    },
};

use evidence::{
    canceled_itself, exit_code, failure_overrides_success, first_copy, is_a_repetition, is_incomplete,
    may_still_run, trust_exit_record, was_never_read,
};
use goes_on::{not_needed, paused, restart_or_end, retry_or_end};
use pace::{CATCH_UP, files_until, has_next_part, next_part, reads_until};
use results::{lack, may_follow, results_of};
use verdict::verdict;

pub use pace::{next_conclusion, status_backlog};

/// What was found of a job that Slurm reports finished.
#[derive(Debug, Clone, Copy)]
pub struct Findings<'a> {
    /// Whether the job's files could be read. If not, missing files prove nothing.
    pub readable: bool,
    /// Whether a status file could not be reported, because of its name or its numbers.
    pub left_out: bool,
    pub markers: &'a Markers,
    pub status: &'a [StatusChunk],
    pub out_tail: &'a [u8],
    pub err_tail: &'a [u8],
    /// The ends of the logs of its roles, if it has any.
    pub role_tails: &'a [u8],
    /// The lines of its logs that look like errors; empty if its logs were not searched.
    pub errors: &'a [LogErrors],
    /// The component with which it ended.
    pub ended_with: Option<&'a EndedWith>,
    /// The text of its progress file, if that was read.
    pub progress: Option<&'a [u8]>,
    /// Its results; `None` if they are left for the next call.
    pub results: Option<&'a [TaskResult]>,
    /// The nodes of the job that Slurm considers unhealthy now.
    pub unhealthy: &'a [UnhealthyNode],
    /// How many nodes the job can exclude, if that is known.
    pub spare: Option<usize>,
}

/// The result of a conclusion.
#[derive(Debug, Clone)]
pub enum Ending {
    Ended(Job),
    /// Its owner has paused it.
    Paused(Job),
    /// The infrastructure failed it: the job is retried.
    Retry {
        job: Job,
        due_at: Timestamp,
    },
    /// The attempt had two Slurm jobs, and ours did nothing: the job continues with the other id.
    Adopt(Job),
    /// More evidence may still become visible through the shared file system.
    Wait {
        job: Job,
        until: Timestamp,
    },
}

/// Concludes a job that Slurm reports finished. Its run has no other writer now (see [`Run`]).
pub fn conclude(job: &Job, found: &Findings<'_>, graces: &Graces, now: Timestamp) -> Ending {
    let mut next = job.clone();
    let Some(task) = Task::of(job) else {
        next.end(Status::Error, "The job has no attempt.".to_owned(), now);
        return Ending::Ended(next);
    };
    if evidence::was_not_needed(job, found) {
        return not_needed(next, now);
    }
    let until = job.finishing_since.unwrap_or(now) + patience(&job.run, &task, found, graces);
    match conclude_run(
        &mut next.run,
        &task,
        found,
        Patience { until, reads_until: reads_until(job, now) },
        now,
    ) {
        Concluded::Copy(first) => {
            evidence::adopt(&mut next, first, now);
            Ending::Adopt(next)
        }
        Concluded::Unread => Ending::Wait { until: next_part(job, now), job: next },
        Concluded::Incomplete => Ending::Wait { job: next, until },
        Concluded::Complete { canceled_itself, read } => {
            let verdict = verdict(&next, &task, canceled_itself, found);
            let results = results_of(job, found);
            let is_done = verdict.status == Status::Done;
            let until = if is_done && may_follow(&results) {
                files_until(job, now)
            } else if verdict.needs_status_line {
                until
            } else {
                now
            };
            if now < until {
                // A last line without its newline may still be completed.
                next.run = *read;
                return Ending::Wait { job: next, until };
            }
            let lack = if is_done { lack(job, &results) } else { None };
            next.run.results = Some(results).filter(|results| !results.is_empty());
            next.run.failure = None;
            let diagnosis = if is_done { None } else { diagnosis(&next, &task, found) };
            if verdict.status == Status::Error {
                next.run.failure = Some(failure::failure(&next, diagnosis.clone(), found));
            }
            if let Some(lack) = lack {
                next.run.failure = Some(failure::of_lack(&lack));
                let lacking = verdict::Verdict::error(&lack, found);
                next.end(lacking.status, lacking.message(None, None), now);
                return Ending::Ended(next);
            }
            let planned = planned_end(&next, found.markers)
                .filter(|end| !(is_done || end.by_code && shows_a_failure(&next, diagnosis.as_ref())));
            match (verdict.status, next.desired, planned) {
                (_, DesiredState::Run | DesiredState::Pause, Some(end)) => {
                    restart_or_end(next, &task, &verdict, &end, graces, now)
                }
                // It would go on, and its owner does not want that any more.
                (_, DesiredState::Cancel | DesiredState::Delete, Some(_)) => {
                    next.end(Status::Canceled, "Canceled.".to_owned(), now);
                    Ending::Ended(next)
                }
                (Status::Canceled, DesiredState::Pause, None) => paused(next, now),
                (Status::Error, DesiredState::Run | DesiredState::Pause, None)
                    if may_be_retried(&next.run, found) =>
                {
                    retry_or_end(next, &task, &verdict, diagnosis, found.spare, graces, now)
                }
                _ => {
                    let message = verdict.message(None, next.run.failure.as_ref());
                    next.end(verdict.status, message, now);
                    Ending::Ended(next)
                }
            }
        }
    }
}

/// How far the evidence of a run has become visible.
enum Concluded {
    /// The attempt had two Slurm jobs, and this one did the work.
    Copy(SlurmJobId),
    /// Its status files have a next part.
    Unread,
    /// Some of it may follow.
    Incomplete,
    /// The run is final. `read` is the run without last lines that may still be completed.
    Complete { canceled_itself: bool, read: Box<Run> },
}

/// How long evidence is waited for.
#[derive(Clone, Copy)]
struct Patience {
    until: Timestamp,
    reads_until: Timestamp,
}

/// Takes in the evidence of a run that Slurm reports finished.
fn conclude_run(
    run: &mut Run,
    task: &Task<'_>,
    found: &Findings<'_>,
    patience: Patience,
    now: Timestamp,
) -> Concluded {
    let Patience { until, reads_until } = patience;
    trust_exit_record(run, task, found.markers, now);
    let held_back = is_held_back(run, task, found.status, now);
    absorb_status(run, task, found.status, now >= until, now);
    if let Some((text, file)) = found.progress.zip(task.progress) {
        reports::absorb_progress(&mut run.progress, &String::from_utf8_lossy(text), file);
    }
    if let Some(first) = first_copy(task, found.markers) {
        return Concluded::Copy(first);
    }
    if (has_next_part(found) || found.results.is_none()) && now < reads_until {
        return Concluded::Unread;
    }
    let exit = exit_code(run, task, found.markers);
    if now < until && (held_back || is_incomplete(run, task, exit, found)) {
        return Concluded::Incomplete;
    }

    let read = Box::new(run.clone());
    absorb_rest(run, task, found.status, now);
    if task.prequeue {
        run.progress.claim_final_status(run.started_at);
    }
    if was_never_read(run, task, found.markers) {
        run.begin_again();
    }
    failure_overrides_success(run);
    let canceled_itself = canceled_itself(run, task, found.markers);
    let was_to_end = run.kill_reason.is_some() || canceled_itself || run.progress.has_failed();
    // Slurm's state is that of the repetition. The run before it was ended because the controller had forgotten it.
    if is_a_repetition(run) && !was_to_end && exit.is_some_and(|exit| exit.code == ENDED_BY_TERM) {
        run.state = None;
    }
    run.exit = exit;
    run.ended_at = run.ended_at.or(Some(now));
    Concluded::Complete { canceled_itself, read }
}

/// How long incomplete evidence is waited for.
fn patience(run: &Run, task: &Task<'_>, found: &Findings<'_>, graces: &Graces) -> TimeDelta {
    if !found.readable {
        // A file server that does not answer takes longer than a late file.
        graces.finish.max(CATCH_UP)
    } else if may_still_run(run, task, found.markers) {
        graces.finish.max(SLURMD_TIMEOUT)
    } else {
        graces.finish
    }
}

/// Whether the infrastructure may be at fault. It is not for a real time limit, a cancellation, or a job that is lost without
/// a trace.
fn may_be_retried(run: &Run, found: &Findings<'_>) -> bool {
    match run.state {
        Some(SlurmState::Timeout) => was_preempted(found),
        Some(SlurmState::Cancelled | SlurmState::Revoked | SlurmState::Preempted) => false,
        Some(_) => true,
        // Slurm has forgotten the job. Its exit record says that it failed; or it never started, and cannot start now.
        None => run.exit.is_some() || no_run_began(found),
    }
}

/// Whether the infrastructure failed the program, whatever its exit code, and the job is retried after that.
fn shows_a_failure(job: &Job, diagnosis: Option<&Diagnosis>) -> bool {
    diagnosis.is_some_and(|found| found.cause != Cause::User && job.spec.restart.on.contains(&found.end))
}

fn diagnosis(job: &Job, task: &Task<'_>, found: &Findings<'_>) -> Option<Diagnosis> {
    let run = &job.run;
    let own = found.ended_with.map_or(&[][..], |ended| &ended.err_tail);
    let logs = [found.err_tail, found.out_tail, own, found.role_tails];
    let exit = exit_record(found.markers, task.attempt.slurm_id);
    diagnose(&Evidence {
        state: run.state.as_ref(),
        exit: run.exit,
        nodes: run.nodes.as_deref().unwrap_or_default(),
        unhealthy: found.unhealthy,
        logs: &logs,
        never_started: match run.state {
            Some(_) => found.readable && !has_begun(run, task, found.markers),
            None => no_run_began(found),
        },
        was_preempted: was_preempted(found),
        terminated: exit.is_some_and(|exit| exit.code == ENDED_BY_TERM),
        has_exit_record: exit.is_some(),
        // An earlier run of the attempt has written to the same logs.
        began: found.markers.begun || run.requeues > 0 || !found.readable,
        // A newline separates the logs of roles.
        wrote_nothing: found.readable
            && run.progress.word.is_none()
            && logs.iter().all(|log| log.trim_ascii().is_empty()),
        service_failed: exit.is_some() && found.ended_with.is_some_and(|ended| ended.is_service),
        image: ImageSource::of(job, task.attempt, &logs),
    })
}

/// Whether slurmstepd wrote last into the log that it ended the job for one of higher priority. At a time limit it says that.
fn was_preempted(found: &Findings<'_>) -> bool {
    let log = String::from_utf8_lossy(found.err_tail);
    let last =
        log.lines().rfind(|line| line.contains(": error: *** JOB ") && line.contains(" CANCELLED AT "));
    last.is_some_and(|line| line.contains(" DUE TO PREEMPTION"))
}

/// Whether no Slurm job has ever begun to run the attempt. The lookup that found no marker files has also claimed the
/// attempt, so none will.
fn no_run_began(found: &Findings<'_>) -> bool {
    let Markers { exit, started, run_claim, .. } = found.markers;
    found.readable && exit.is_none() && started.is_none() && run_claim.is_none()
}

/// Whether the script of the job's last run has left its start marker or its exit record.
fn has_begun(run: &Run, task: &Task<'_>, markers: &Markers) -> bool {
    let [start, end] = [run.started_at, run.ended_at].map(|at| at.map(|at| at.timestamp()));
    exit_record(markers, task.attempt.slurm_id).is_some()
        || start_marker(markers, task.attempt.slurm_id).is_some()
            && !has_never_started(run, task, markers, start, end)
}

#[cfg(test)]
mod tests;
