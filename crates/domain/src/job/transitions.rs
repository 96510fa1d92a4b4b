//! The transitions of a job: each method leaves it in a consistent state.

use std::sync::LazyLock;

use slurm::{InvalidName, NodeName, RemotePath};

use crate::{
    clock::Timestamp,
    cluster::target::ClusterName,
    job::{
        array::ArrayState,
        attempt::{Attempt, Outcome, Verdict},
        identity::{AttemptNo, JobId},
        run::Run,
        status::{Phase, Source, Status},
        stored::{DesiredState, Job, Owner},
    },
    progress::summary::Progress,
    request::spec::JobSpec,
    run::plan::Transition,
};

const ACCEPTED: &str = "Accepted; waiting to be submitted.";
const ACCEPTED_TO_WAIT: &str = "Accepted; waiting for the jobs that it needs.";
const CANCELED_LOCALLY: &str = "Canceled before it reached Slurm.";
const PAUSED_LOCALLY: &str = "Paused before it reached Slurm.";

impl Job {
    /// A job that was just accepted.
    pub fn accepted(id: JobId, owner: Owner, cluster: ClusterName, spec: JobSpec, now: Timestamp) -> Self {
        Self {
            id,
            owner,
            cluster,
            array: ArrayState::of(&spec),
            desired: DesiredState::Run,
            status: Status::Pending,
            phase: if spec.needs.is_empty() { Phase::Queued } else { Phase::Waiting },
            message: if spec.needs.is_empty() { ACCEPTED } else { ACCEPTED_TO_WAIT }.to_owned(),
            spec,
            pending_reason: None,
            attempt: None,
            run: Run::default(),
            retry_count: 0,
            failures: Vec::new(),
            is_skipped: false,
            finishing_since: None,
            created_at: now,
            submitted_at: None,
            started_at: None,
            finished_at: None,
            last_modified: now,
            observed_at: None,
            source: Source::Db,
            version: 1,
        }
    }

    /// The number of the next attempt.
    pub fn next_attempt(&self) -> AttemptNo {
        match &self.attempt {
            None => AttemptNo::FIRST,
            Some(attempt) if attempt.ahead_closed => attempt.no.next().next(),
            Some(attempt) => attempt.no.next(),
        }
    }

    /// A new attempt of this job: an intent, to be stored before anything remote happens.
    pub fn new_attempt(&self, job_dir: RemotePath, now: Timestamp) -> Result<Attempt, InvalidName> {
        Attempt::intended(self.id, self.next_attempt(), job_dir, now)
    }

    /// Makes this the job's newest attempt, with a run of its own.
    pub fn begin_attempt(&mut self, attempt: Attempt) {
        if self.attempt.is_some() && self.array.is_none() {
            let progress = self.progress().clone();
            // It has not run since its owner retried it.
            if self.started_at.is_none() {
                self.run.forget_time();
            }
            self.run = self.run.next_attempt(&progress);
        }
        self.attempt = Some(attempt);
    }

    /// What its newest run has reported. Nothing, once its owner has retried the job.
    pub fn progress(&self) -> &Progress {
        static NOTHING: LazyLock<Progress> = LazyLock::new(Progress::default);
        let verdict = self.attempt.as_ref().and_then(|attempt| attempt.verdict.as_ref());
        let had_ended = verdict.is_some_and(|verdict| verdict.outcome.is_final());
        if had_ended && self.phase != Phase::Ended { &NOTHING } else { &self.run.progress }
    }

    /// Ends the job. Only its owner can retry it.
    pub(crate) fn end(&mut self, status: Status, message: String, now: Timestamp) {
        let outcome = if status == Status::Done {
            Outcome::Done
        } else if status == Status::Canceled {
            Outcome::Canceled
        } else {
            Outcome::Error
        };
        self.close_attempt(Verdict::new(outcome, &message, now));
        self.leave_slurm(status, Phase::Ended, message);
        self.finished_at = Some(now);
    }

    /// Pauses the job until its owner resumes it.
    pub(crate) fn pause(&mut self, why: &str, message: String, now: Timestamp) {
        self.close_attempt(Verdict::new(Outcome::Paused, why, now));
        self.leave_slurm(Status::Paused, Phase::Paused, message);
    }

    /// Waits for the next attempt.
    pub(crate) fn await_retry(&mut self, verdict: Verdict, message: String) {
        self.close_attempt(verdict);
        self.retry_count += 1;
        self.leave_slurm(Status::Pending, Phase::RetryWait, message);
    }

    fn leave_slurm(&mut self, status: Status, phase: Phase, message: String) {
        self.status = status;
        self.phase = phase;
        self.message = message;
        self.pending_reason = None;
        self.run.missing_since = None;
        self.finishing_since = None;
    }

    /// Records how the newest attempt ended, unless that is recorded already. What it has queued ahead has to be closed.
    pub(crate) fn close_attempt(&mut self, verdict: Verdict) {
        let has_ahead = self.number_ahead().is_some();
        if let Some(attempt) = &mut self.attempt {
            attempt.ahead_closed = has_ahead;
            attempt.verdict.get_or_insert(verdict);
        }
    }

    /// The job, paused before Slurm had it. It ends the attempt, so that a late submission of it does not count for the
    /// resumed job.
    #[must_use]
    pub fn paused_locally(&self, now: Timestamp) -> Self {
        let mut job = self.clone();
        job.pause(PAUSED_LOCALLY, PAUSED_LOCALLY.to_owned(), now);
        job
    }

    /// The job, canceled before Slurm had it.
    #[must_use]
    pub fn canceled_locally(&self, now: Timestamp) -> Self {
        let mut job = self.clone();
        job.end(Status::Canceled, CANCELED_LOCALLY.to_owned(), now);
        job
    }

    /// The job when nothing can be submitted for it, and when it is due again: its tasks in Slurm go on.
    pub fn unstageable(&self, why: &str, now: Timestamp) -> Transition {
        let mut job = self.clone();
        let in_slurm = |attempt: &Attempt| attempt.is_open() && attempt.slurm_id.is_some();
        let earlier = job.attempt.clone().filter(|attempt| self.array.is_some() && in_slurm(attempt));
        job.end(Status::Error, why.to_owned(), now);
        job.attempt = earlier.or(job.attempt);
        job.after_piece(None, now)
    }

    /// Allows these nodes again although they failed: without them Slurm finds no place for the job.
    pub(crate) fn allow_again(&mut self, nodes: &[NodeName]) {
        for past in &mut self.failures {
            past.allowed_again |= past.nodes.iter().any(|node| nodes.contains(node));
        }
    }
}
