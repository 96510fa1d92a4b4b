//! The attempts to run a job.

use chrono::{DateTime, Utc};
use domain::{Attempt, JobId, LaunchImage, Run};
use serde::Serialize;
use utoipa::ToSchema;

/// The attempts to run a job, oldest first.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct AttemptListView {
    /// The job's id.
    pub job_id: JobId,
    /// The attempts.
    pub attempts: Vec<AttemptView>,
}

/// An attempt to run a job.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct AttemptView {
    /// The attempt's number, from 1.
    pub number: u32,
    /// The attempt's Slurm id.
    pub slurm_job_id: Option<String>,
    /// The attempt's unique job name in Slurm.
    pub slurm_job_name: String,
    /// The attempt's state as Slurm reports it.
    pub slurm_state: Option<String>,
    /// The exit code of the batch script.
    pub exit_code: Option<u8>,
    /// The signal that ended the batch script; 0 for none.
    pub exit_signal: Option<u8>,
    /// The attempt's nodes, one by one.
    pub nodes: Vec<String>,
    /// Slurm's reason for its state.
    pub reason: Option<String>,
    /// The attempt's partition.
    pub partition: Option<String>,
    /// What was started in the place of images that the job requests, such as converted files.
    pub images: Vec<LaunchImage>,
    /// When the attempt was created, before anything was submitted.
    pub created_on: DateTime<Utc>,
    /// When Slurm accepted it.
    pub submitted_on: Option<DateTime<Utc>>,
    /// When it started to run.
    pub started_on: Option<DateTime<Utc>>,
    /// When it ended.
    pub ended_on: Option<DateTime<Utc>>,
    /// How often Slurm has requeued it after it had started.
    pub requeues: u32,
    /// The nodes that it was not allowed to use.
    pub excluded_nodes: Vec<String>,
    /// `done`, `error`, `canceled`, `paused` or `retried`; null while the attempt is not over.
    pub outcome: Option<String>,
    /// When the outcome was decided.
    pub concluded_on: Option<DateTime<Utc>>,
    /// Why the job was or was not retried.
    pub outcome_reason: Option<String>,
    /// The failure rule that decided the outcome.
    pub rule: Option<String>,
    /// The log line that the rule matched.
    pub matched_line: Option<String>,
}

impl AttemptView {
    pub(crate) fn new(attempt: &Attempt, run: &Run) -> Self {
        let verdict = attempt.verdict.as_ref();
        Self {
            number: attempt.no.get(),
            slurm_job_id: attempt.slurm_id.map(|id| id.to_string()),
            slurm_job_name: attempt.token.to_string(),
            slurm_state: run.state.as_ref().map(ToString::to_string),
            exit_code: run.exit.map(|exit| exit.code),
            exit_signal: run.exit.map(|exit| exit.signal),
            nodes: run.nodes.as_deref().map(slurm::node_list::expand).unwrap_or_default(),
            reason: run.reason.clone(),
            partition: run.partition.clone(),
            images: attempt.images.clone(),
            created_on: attempt.intended_at,
            // An attempt that was queued ahead is found later.
            submitted_on: attempt.submitted_at.map(|at| run.queued_since.map_or(at, |since| since.min(at))),
            started_on: run.started_at,
            ended_on: run.ended_at,
            requeues: run.requeues,
            excluded_nodes: attempt.excluded.iter().map(ToString::to_string).collect(),
            outcome: verdict.map(|verdict| verdict.outcome.to_string()),
            concluded_on: verdict.map(|verdict| verdict.at),
            outcome_reason: verdict.map(|verdict| verdict.why.clone()),
            rule: verdict.and_then(|verdict| verdict.rule.clone()),
            matched_line: verdict.and_then(|verdict| verdict.line.clone()),
        }
    }
}
