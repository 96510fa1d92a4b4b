//! As much of a job as it takes to ask a cluster about it: a poll asks about ten thousand in one go, and whole jobs,
//! specifications and all, would not fit into the memory that it may take.

use std::num::NonZeroU32;

use remote::StatusCursor;

use crate::{
    clock::Timestamp,
    job::{
        attempt::AttemptPlace,
        id::JobId,
        status::Phase,
        stored::{DesiredState, Job},
    },
};

/// A job that Slurm has and is not through with.
#[derive(Debug, Clone, PartialEq)]
pub struct ActiveJob {
    pub id: JobId,
    /// As [`Job::version`]: what an answer says holds for the job as it was when it was asked about.
    pub version: i64,
    /// Its newest attempt.
    pub attempt: AttemptPlace,
    pub submitted_at: Option<Timestamp>,
    /// How far its status files were read.
    pub cursors: Vec<StatusCursor>,
    pub phase: Phase,
    pub desired: DesiredState,
    /// We end its present run ourselves.
    pub is_doomed: bool,
    /// A sign of life of its present run is known.
    pub was_alive: bool,
    /// How long a running job may be silent; not told of one that does not run.
    pub timeout_minutes: Option<NonZeroU32>,
}

impl ActiveJob {
    /// None of a job that has no attempt.
    pub fn of(job: &Job) -> Option<Self> {
        let attempt = job.attempt.as_ref()?;
        Some(Self {
            id: job.id,
            version: job.version,
            attempt: attempt.into(),
            submitted_at: job.submitted_at,
            cursors: attempt.status.cursors(),
            phase: job.phase,
            desired: job.desired,
            is_doomed: job.kill_reason.is_some(),
            was_alive: job.activity.is_some(),
            timeout_minutes: job.spec.timeout_minutes.filter(|_| job.phase == Phase::Running),
        })
    }
}
