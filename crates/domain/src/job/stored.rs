//! A job as it is stored: what was asked, where it stands, and its newest attempt.

use std::fmt;

use slurm::{InvalidName, RemotePath};
use strum::{Display, EnumString, IntoStaticStr};

use crate::{
    clock::Timestamp,
    cluster::target::ClusterName,
    job::{
        attempt::{Attempt, AttemptNo},
        id::JobId,
        status::{Phase, Source, Status},
    },
    progress::summary::Progress,
    request::spec::JobSpec,
    run::{activity::Activity, retry::PastFailure},
};

/// Whose job it is: the owner of the token that made it.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Owner(String);

impl Owner {
    pub fn new(name: impl Into<String>) -> Self {
        Self(name.into())
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl From<String> for Owner {
    fn from(name: String) -> Self {
        Self(name)
    }
}

impl fmt::Display for Owner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// What the caller wants of the job now. A wish survives restarts and wins over work in flight.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Display, EnumString, IntoStaticStr)]
#[strum(serialize_all = "snake_case")]
pub enum DesiredState {
    Run,
    Cancel,
    /// Off the cluster, keeping its checkpoints, until it is resumed.
    Pause,
    /// Gone, with everything that it left on the cluster.
    Delete,
}

/// One job.
#[derive(Debug, Clone)]
pub struct Job {
    pub id: JobId,
    pub owner: Owner,
    pub cluster: ClusterName,
    pub spec: JobSpec,
    pub desired: DesiredState,
    pub status: Status,
    pub phase: Phase,
    /// What happens now and, when waiting, why: a sentence for a person.
    pub message: String,
    /// Slurm's own word for why the job waits.
    pub pending_reason: Option<String>,
    pub attempt: Option<Attempt>,
    /// Attempts that were made again because of the infrastructure, since the job was accepted or its owner last
    /// sent it again: the budget is counted by it.
    pub retry_count: u32,
    /// The attempts that failed for reasons of the infrastructure, oldest first.
    pub failures: Vec<PastFailure>,
    pub progress: Progress,
    /// Its last sign of life, if it is watched for one.
    pub activity: Option<Activity>,
    /// Why we end its present run ourselves, in a sentence.
    pub kill_reason: Option<String>,
    /// Since when neither the scheduler nor accounting knows the job, without interruption.
    pub missing_since: Option<Timestamp>,
    /// Since when Slurm is known to be through with it and its last words are being read.
    pub finishing_since: Option<Timestamp>,
    pub created_at: Timestamp,
    pub submitted_at: Option<Timestamp>,
    pub started_at: Option<Timestamp>,
    pub finished_at: Option<Timestamp>,
    pub last_modified: Timestamp,
    pub observed_at: Option<Timestamp>,
    pub source: Source,
    /// Rises with every change of what is shown of the job or of its newest attempt.
    pub version: i64,
}

impl Job {
    /// A job that was just accepted: nothing has been done for it yet.
    pub fn accepted(id: JobId, owner: Owner, cluster: ClusterName, spec: JobSpec, now: Timestamp) -> Self {
        Self {
            id,
            owner,
            cluster,
            spec,
            desired: DesiredState::Run,
            status: Status::Pending,
            phase: Phase::Queued,
            message: "Accepted; waiting to be submitted.".to_owned(),
            pending_reason: None,
            attempt: None,
            retry_count: 0,
            failures: Vec::new(),
            progress: Progress::default(),
            activity: None,
            kill_reason: None,
            missing_since: None,
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

    /// The number that the next attempt will have.
    pub fn next_attempt(&self) -> AttemptNo {
        self.attempt.as_ref().map_or(AttemptNo::FIRST, |attempt| attempt.no.next())
    }

    /// A new attempt of this job: an intent, to be stored before anything remote happens.
    /// It reads the status files on from where the last attempt ended.
    pub fn new_attempt(&self, job_dir: RemotePath, now: Timestamp) -> Result<Attempt, InvalidName> {
        let mut attempt = Attempt::intended(self.id, self.next_attempt(), job_dir, now)?;
        if let Some(last) = &self.attempt {
            attempt.status = last.status.inherited();
        }
        Ok(attempt)
    }

    /// Another run begins, of a new attempt or because Slurm has requeued the same: what is known of the last one is not
    /// about this one.
    pub fn begin_run(&mut self) {
        if let Some(attempt) = &mut self.attempt {
            attempt.status.begin_run(&self.progress, attempt.requeues);
        }
        self.progress.begin_run();
        self.activity = None;
        self.kill_reason = None;
    }

    /// The runs that were said to begin after so many requeues never did.
    pub(crate) fn resume_run(&mut self, requeues: u32) {
        let Some(attempt) = &mut self.attempt else { return };
        attempt.requeues = requeues;
        if let Some(before) = attempt.status.resume_run(requeues) {
            self.progress.resume_run(before);
        }
    }
}
