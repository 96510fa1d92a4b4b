//! A job as it is stored: its specification, its state, and its newest attempt.

use std::{fmt, num::NonZeroU32};

use remote::StatusCursor;
use strum::{Display, EnumString, IntoStaticStr};

use crate::{
    clock::Timestamp,
    cluster::target::ClusterName,
    job::{
        array::ArrayState,
        attempt::{Attempt, AttemptPlace, PastFailure},
        failure::Failure,
        identity::JobId,
        run::Run,
        status::{Phase, Source, Status},
    },
    request::spec::JobSpec,
    run::reports::Reporting,
};

/// The job's owner: the owner of the token that created it. The service owns the jobs that convert images; no caller has its name.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Owner(String);

impl Owner {
    pub fn new(name: impl Into<String>) -> Self {
        Self(name.into())
    }

    /// The service itself.
    pub const SERVICE: Self = Self(String::new());

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

/// What the owner wants. It survives restarts, and overrides work in progress.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Display, EnumString, IntoStaticStr)]
#[strum(serialize_all = "snake_case")]
pub enum DesiredState {
    Run,
    Cancel,
    /// Off the cluster until it is resumed; its checkpoints stay.
    Pause,
    /// Deleted, with all its files on the cluster.
    Delete,
}

/// One job.
#[derive(Debug, Clone, PartialEq)]
pub struct Job {
    pub id: JobId,
    pub owner: Owner,
    pub cluster: ClusterName,
    pub spec: JobSpec,
    pub desired: DesiredState,
    pub status: Status,
    pub phase: Phase,
    /// A sentence for a person: what happens now, and why.
    pub message: String,
    /// Slurm's reason why the job is pending.
    pub pending_reason: Option<String>,
    pub attempt: Option<Attempt>,
    /// The run of its task in that attempt. The default value before the first attempt, and for a job with an array.
    pub run: Run,
    /// The state of its array, if it has one.
    pub array: Option<ArrayState>,
    /// Automatic retries since the job was accepted or its owner last retried it. The retry budget bounds it.
    pub retry_count: u32,
    /// The attempts that failed because of the infrastructure, oldest first.
    pub failures: Vec<PastFailure>,
    /// It was canceled before it was submitted, because a job that it needs did not become what it waits for.
    pub is_skipped: bool,
    /// Since when Slurm reports the job finished, while its exit code and logs are collected.
    pub finishing_since: Option<Timestamp>,
    pub created_at: Timestamp,
    pub submitted_at: Option<Timestamp>,
    pub started_at: Option<Timestamp>,
    pub finished_at: Option<Timestamp>,
    pub last_modified: Timestamp,
    pub observed_at: Option<Timestamp>,
    pub source: Source,
    /// Increases with every visible change of the job or of its newest attempt.
    pub version: i64,
}

impl Job {
    /// Why it failed; of an array, why the first of its tasks did that failed. `None` unless its status is `Error`, and for a job whose program
    /// has not run.
    pub fn failure(&self) -> Option<&Failure> {
        let failure = self.array.as_ref().map_or(self.run.failure.as_ref(), |array| array.failure.as_ref());
        failure.filter(|_| self.status == Status::Error)
    }
}

/// The part of a job that a poll needs. One poll covers ten thousand jobs, and whole jobs with their specifications would
/// take too much memory.
#[derive(Debug, Clone, PartialEq)]
pub struct ActiveJob {
    pub id: JobId,
    /// As [`Job::version`]: the poll's result applies to this version of the job.
    pub version: i64,
    /// Its newest attempt.
    pub attempt: AttemptPlace,
    pub submitted_at: Option<Timestamp>,
    /// The read positions in its status files.
    pub cursors: Vec<StatusCursor>,
    pub phase: Phase,
    pub desired: DesiredState,
    /// The service ends its current run.
    pub is_doomed: bool,
    /// Its current run has shown activity.
    pub was_alive: bool,
    /// Its activity timeout; absent unless it is running.
    pub timeout_minutes: Option<NonZeroU32>,
    /// What it may report; nothing unless it is running.
    pub reporting: Reporting,
}

impl ActiveJob {
    /// `None` for a job without an attempt.
    pub fn of(job: &Job) -> Option<Self> {
        let attempt = job.attempt.as_ref()?;
        Some(Self {
            id: job.id,
            version: job.version,
            attempt: attempt.into(),
            submitted_at: job.submitted_at,
            cursors: job.run.status.cursors(),
            phase: job.phase,
            desired: job.desired,
            is_doomed: job.run.kill_reason.is_some(),
            was_alive: job.run.activity.is_some(),
            timeout_minutes: job.spec.timeout_minutes.filter(|_| job.phase == Phase::Running),
            reporting: if job.phase == Phase::Running {
                Reporting::of(&job.spec)
            } else {
                Reporting::default()
            },
        })
    }
}
