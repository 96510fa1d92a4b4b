//! Changed jobs as JSON documents for the statements: any number of jobs is one statement.
//!
//! The keys are columns: the database reads the documents with `jsonb_populate_recordset`.

use domain::{Attempt, Job, JobId, Timestamp};
use serde_json::{Value, json};
use slurm::{SlurmJobId, SlurmState};

/// The documents of some jobs.
pub(crate) struct Documents {
    /// For `jobs`.
    pub(crate) jobs: Value,
    /// For `slurm_metadata`: the newest attempt of each job that has one.
    pub(crate) attempts: Value,
    /// For `job_events`: new lines of the status files. `seq` counts from 1 for each job.
    pub(crate) lines: Value,
}

impl Documents {
    /// Each job comes with the time at which it is due.
    pub(crate) fn of<'a>(changed: impl Iterator<Item = (&'a Job, Option<Timestamp>)>) -> Self {
        let (mut jobs, mut attempts, mut lines) = (Vec::new(), Vec::new(), Vec::new());
        for (job, due_at) in changed {
            jobs.push(job_document(job, due_at));
            if let Some(attempt) = &job.attempt {
                attempts.push(attempt_document(job.id, attempt));
                lines.extend(line_documents(job.id, attempt));
            }
        }
        Self { jobs: jobs.into(), attempts: attempts.into(), lines: lines.into() }
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
        "progress": job.progress,
        "activity": job.activity,
        "kill_reason": job.kill_reason,
        "missing_since": job.missing_since,
        "finishing_since": job.finishing_since,
        "submitted_at": job.submitted_at,
        "started_at": job.started_at,
        "finished_at": job.finished_at,
        "observed_at": job.observed_at,
        "source": job.source,
        "due_at": due_at,
    })
}

fn attempt_document(job: JobId, attempt: &Attempt) -> Value {
    let verdict = attempt.verdict.as_ref();
    let image = attempt.image.as_ref();
    json!({
        "job_id": job,
        "attempt": attempt.no.get(),
        "token": attempt.token.as_str(),
        "job_dir": attempt.job_dir.as_str(),
        "slurm_job_id": attempt.slurm_id.map(SlurmJobId::get),
        "slurm_state": attempt.slurm_state.as_ref().map(SlurmState::as_str),
        "exit_code": attempt.exit.map(|exit| exit.code),
        "exit_signal": attempt.exit.map(|exit| exit.signal),
        "nodes": attempt.nodes,
        "reason": attempt.reason,
        "partition": attempt.partition,
        "image": image.map(|launched| launched.image.to_string()),
        "image_note": image.and_then(|launched| launched.note.as_deref()),
        "status_files": attempt.status,
        "intended_at": attempt.intended_at,
        "submit_fence": attempt.fence.newest,
        "submit_fence_cleared": attempt.fence.cleared,
        "submit_fence_shut_at": attempt.fence.shut_at,
        "absent_at": attempt.fence.absent_at,
        "failed_submissions": attempt.setbacks,
        "submitted_at": attempt.submitted_at,
        "queued_since": attempt.queued_since,
        "estimated_start": attempt.estimated_start,
        "started_at": attempt.started_at,
        "ended_at": attempt.ended_at,
        "excluded_nodes": attempt.excluded,
        "requeues": attempt.requeues,
        "requeue_unexplained": attempt.requeue_unexplained,
        "concluded_at": verdict.map(|verdict| verdict.at),
        "outcome": verdict.map(|verdict| <&str>::from(verdict.outcome)),
        "why": verdict.map(|verdict| verdict.why.as_str()),
        "rule": verdict.and_then(|verdict| verdict.rule.as_deref()),
        "matched_line": verdict.and_then(|verdict| verdict.line.as_deref()),
    })
}

fn line_documents(job: JobId, attempt: &Attempt) -> impl Iterator<Item = Value> {
    attempt.status.events().iter().zip(1_usize..).map(move |(event, seq)| {
        json!({
            "job_id": job,
            "seq": seq,
            "attempt": attempt.no.get(),
            "kind": <&str>::from(event.kind),
            "file": event.file,
            "earlier_run": event.earlier_run,
            "data": event.data,
        })
    })
}
