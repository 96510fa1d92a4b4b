//! Changed values to the documents that the statements read.

use domain::{Attempt, Job, JobId, StatusFiles, Timestamp};
use serde::Serialize;
use slurm::{NodeName, SlurmJobId, SlurmState};
use uuid::Uuid;

/// What may change of a job after it was accepted; read by the database with `jsonb_to_recordset`, so that
/// any number of jobs is one statement.
#[derive(Debug, Serialize)]
pub(crate) struct JobChange<'a> {
    id: Uuid,
    version: i64,
    desired_state: &'static str,
    status: &'static str,
    phase: &'static str,
    message: &'a str,
    pending_reason: Option<&'a str>,
    attempt: u32,
    retry_count: u32,
    failures: &'a [domain::PastFailure],
    progress: &'a domain::Progress,
    activity: Option<&'a domain::Activity>,
    kill_reason: Option<&'a str>,
    missing_since: Option<Timestamp>,
    finishing_since: Option<Timestamp>,
    submitted_at: Option<Timestamp>,
    started_at: Option<Timestamp>,
    finished_at: Option<Timestamp>,
    observed_at: Option<Timestamp>,
    source: &'static str,
    due_at: Option<Timestamp>,
}

impl<'a> JobChange<'a> {
    pub(crate) fn new(job: &'a Job, due_at: Option<Timestamp>) -> Self {
        Self {
            id: job.id.get(),
            version: job.version,
            desired_state: job.desired.into(),
            status: job.status.into(),
            phase: job.phase.into(),
            message: &job.message,
            pending_reason: job.pending_reason.as_deref(),
            attempt: job.attempt.as_ref().map_or(0, |attempt| attempt.no.get()),
            retry_count: job.retry_count,
            failures: &job.failures,
            progress: &job.progress,
            activity: job.activity.as_ref(),
            kill_reason: job.kill_reason.as_deref(),
            missing_since: job.missing_since,
            finishing_since: job.finishing_since,
            submitted_at: job.submitted_at,
            started_at: job.started_at,
            finished_at: job.finished_at,
            observed_at: job.observed_at,
            source: job.source.into(),
            due_at,
        }
    }
}

/// An attempt as it is to be stored.
#[derive(Debug, Serialize)]
pub(crate) struct AttemptChange<'a> {
    job_id: Uuid,
    attempt: u32,
    token: &'a str,
    job_dir: &'a str,
    slurm_job_id: Option<u32>,
    slurm_state: Option<&'a str>,
    exit_code: Option<u8>,
    exit_signal: Option<u8>,
    nodes: Option<&'a str>,
    reason: Option<&'a str>,
    partition: Option<&'a str>,
    status_files: &'a StatusFiles,
    intended_at: Timestamp,
    submit_fence: u32,
    submit_fence_cleared: u32,
    submit_fence_shut_at: Option<Timestamp>,
    submitted_at: Option<Timestamp>,
    queued_since: Option<Timestamp>,
    estimated_start: Option<Timestamp>,
    started_at: Option<Timestamp>,
    ended_at: Option<Timestamp>,
    setbacks: u32,
    absent_at: Option<Timestamp>,
    excluded_nodes: &'a [NodeName],
    requeues: u32,
    requeue_unexplained: bool,
    concluded_at: Option<Timestamp>,
    outcome: Option<&'static str>,
    why: Option<&'a str>,
    rule: Option<&'a str>,
    matched_line: Option<&'a str>,
    image: Option<String>,
    image_note: Option<&'a str>,
}

impl<'a> AttemptChange<'a> {
    pub(crate) fn new(job: JobId, attempt: &'a Attempt) -> Self {
        Self {
            job_id: job.get(),
            attempt: attempt.no.get(),
            token: attempt.token.as_str(),
            job_dir: attempt.job_dir.as_str(),
            slurm_job_id: attempt.slurm_id.map(SlurmJobId::get),
            slurm_state: attempt.slurm_state.as_ref().map(SlurmState::as_str),
            exit_code: attempt.exit.map(|exit| exit.code),
            exit_signal: attempt.exit.map(|exit| exit.signal),
            nodes: attempt.nodes.as_deref(),
            reason: attempt.reason.as_deref(),
            partition: attempt.partition.as_deref(),
            status_files: &attempt.status,
            intended_at: attempt.intended_at,
            submit_fence: attempt.fence.newest,
            submit_fence_cleared: attempt.fence.cleared,
            submit_fence_shut_at: attempt.fence.shut_at,
            submitted_at: attempt.submitted_at,
            queued_since: attempt.queued_since,
            estimated_start: attempt.estimated_start,
            started_at: attempt.started_at,
            ended_at: attempt.ended_at,
            setbacks: attempt.setbacks,
            absent_at: attempt.fence.absent_at,
            excluded_nodes: &attempt.excluded,
            requeues: attempt.requeues,
            requeue_unexplained: attempt.requeue_unexplained,
            concluded_at: attempt.verdict.as_ref().map(|verdict| verdict.at),
            outcome: attempt.verdict.as_ref().map(|verdict| verdict.outcome.into()),
            why: attempt.verdict.as_ref().map(|verdict| verdict.why.as_str()),
            rule: attempt.verdict.as_ref().and_then(|verdict| verdict.rule.as_deref()),
            matched_line: attempt.verdict.as_ref().and_then(|verdict| verdict.line.as_deref()),
            image: attempt.image.as_ref().map(|launched| launched.image.to_string()),
            image_note: attempt.image.as_ref().and_then(|launched| launched.note.as_deref()),
        }
    }
}

/// Something that was read in a job's status files.
#[derive(Debug, Serialize)]
pub(crate) struct LineChange<'a> {
    job_id: Uuid,
    /// Counted from 1 among those of the job that are stored together.
    ord: usize,
    attempt: u32,
    kind: &'static str,
    file: &'a str,
    earlier_run: bool,
    data: &'a serde_json::Value,
}

impl<'a> LineChange<'a> {
    pub(crate) fn all_of(job: &'a Job) -> impl Iterator<Item = Self> {
        let read = job.attempt.iter().flat_map(|attempt| {
            attempt
                .status
                .events()
                .iter()
                .enumerate()
                .map(move |(index, event)| (attempt.no, index + 1, event))
        });
        read.map(|(attempt, ord, event)| Self {
            job_id: job.id.get(),
            ord,
            attempt: attempt.get(),
            kind: event.kind.into(),
            file: &event.file,
            earlier_run: event.earlier_run,
            data: &event.data,
        })
    }
}
