//! Changed jobs as JSON documents for the statements: any number of jobs is one statement.
//!
//! The keys are columns: the database reads the documents with `jsonb_populate_recordset`.

use domain::{Attempt, AttemptNo, Job, JobId, Run, TaskResult, Timestamp};
use serde_json::{Value, json};
use slurm::{SlurmJobId, SlurmState};

/// The documents of some jobs.
pub(crate) struct Documents {
    /// For `jobs`.
    pub(crate) jobs: Value,
    /// For `slurm_metadata`: the newest attempt of each job that has one.
    pub(crate) attempts: Value,
    /// For `runs`: the run of each job in that attempt. One that no poll has seen needs no row.
    pub(crate) runs: Value,
    /// For `job_events`: new lines of the status files. `seq` counts from 1 for each job.
    pub(crate) lines: Value,
}

impl Documents {
    /// Each job comes with the time at which it is due.
    pub(crate) fn of<'a>(changed: impl Iterator<Item = (&'a Job, Option<Timestamp>)>) -> Self {
        let (mut jobs, mut attempts, mut runs, mut lines) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
        for (job, due_at) in changed {
            jobs.push(job_document(job, due_at));
            if let Some(array) = &job.array {
                let all = array.earlier.iter().chain(&job.attempt);
                attempts.extend(all.map(|attempt| attempt_document(job.id, attempt)));
            } else if let Some(attempt) = &job.attempt {
                attempts.push(attempt_document(job.id, attempt));
                lines.extend(line_documents(job.id, attempt.no, &job.run));
                if job.run != Run::default() {
                    runs.push(run_document(job.id, attempt.no, &job.run));
                }
            }
        }
        Self { jobs: jobs.into(), attempts: attempts.into(), runs: runs.into(), lines: lines.into() }
    }
}

/// The columns that may change after a job was accepted.
fn job_document(job: &Job, due_at: Option<Timestamp>) -> Value {
    json!({
        "id": job.id,
        "version": job.version,
        "desired_state": <&str>::from(job.desired),
        "status": job.status,
        "phase": job.phase,
        "message": job.message,
        "pending_reason": job.pending_reason,
        "attempt": job.attempt.as_ref().map_or(0, |attempt| attempt.no.get()),
        "retry_count": job.retry_count,
        "failures": job.failures,
        "skipped": job.is_skipped,
        "finishing_since": job.finishing_since,
        "submitted_at": job.submitted_at,
        "started_at": job.started_at,
        "finished_at": job.finished_at,
        "observed_at": job.observed_at,
        "source": job.source,
        "partition": job.run.partition,
        "array_state": job.array,
        "due_at": due_at,
    })
}

fn attempt_document(job: JobId, attempt: &Attempt) -> Value {
    let verdict = attempt.verdict.as_ref();
    json!({
        "job_id": job,
        "attempt": attempt.no.get(),
        "token": attempt.token.as_str(),
        "job_dir": attempt.job_dir.as_str(),
        "slurm_job_id": attempt.slurm_id.map(SlurmJobId::get),
        "tasks": attempt.tasks.to_string(),
        "base": attempt.base,
        "images": attempt.images,
        "intended_at": attempt.intended_at,
        "submit_fence": attempt.fence.newest,
        "submit_fence_cleared": attempt.fence.cleared,
        "submit_fence_shut_at": attempt.fence.shut_at,
        "absent_at": attempt.fence.absent_at,
        "failed_submissions": attempt.setbacks,
        "submitted_at": attempt.submitted_at,
        "excluded_nodes": attempt.excluded,
        "explained_requeues": attempt.explained_requeues,
        "ahead_closed": attempt.ahead_closed,
        "concluded_at": verdict.map(|verdict| verdict.at),
        "outcome": verdict.map(|verdict| <&str>::from(verdict.outcome)),
        "why": verdict.map(|verdict| verdict.why.as_str()),
        "rule": verdict.and_then(|verdict| verdict.rule.as_deref()),
        "matched_line": verdict.and_then(|verdict| verdict.line.as_deref()),
    })
}

pub(crate) fn run_document(job: JobId, attempt: AttemptNo, run: &Run) -> Value {
    json!({
        "job_id": job,
        "attempt": attempt.get(),
        "task": run.task,
        "slurm_state": run.state.as_ref().map(SlurmState::as_str),
        "exit_code": run.exit.map(|exit| exit.code),
        "exit_signal": run.exit.map(|exit| exit.signal),
        "nodes": run.nodes,
        "reason": run.reason,
        "partition": run.partition,
        "status_files": run.status,
        "progress": run.progress,
        "activity": run.activity,
        "usage": run.usage,
        "kill_reason": run.kill_reason,
        "queued_since": run.queued_since,
        "estimated_start": run.estimated_start,
        "started_at": run.started_at,
        "ended_at": run.ended_at,
        "missing_since": run.missing_since,
        "requeues": run.requeues,
        "ran_before": run.ran_before,
        "waits_again": run.waits_again,
        "source": run.source,
        "over": run.is_over,
        "failure": run.failure,
        "results": run.results.as_deref().and_then(TaskResult::stored),
        "superseded": false,
    })
}

pub(crate) fn line_documents(job: JobId, attempt: AttemptNo, run: &Run) -> impl Iterator<Item = Value> {
    run.status.events().iter().zip(1_usize..).map(move |(event, seq)| {
        json!({
            "job_id": job,
            "seq": seq,
            "attempt": attempt.get(),
            "kind": <&str>::from(event.kind),
            "file": event.file,
            "earlier_run": event.earlier_run,
            "data": event.data,
        })
    })
}
