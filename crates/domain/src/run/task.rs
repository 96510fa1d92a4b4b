//! The task that a run is of: what the rules of a run need to know of its job.

use std::num::NonZeroU32;

use crate::{
    cluster::idle::IdlePolicy,
    job::{
        attempt::Attempt,
        identity::JobId,
        stored::{DesiredState, Job},
    },
    request::progress::ProgressFile,
};

/// One task of a job, in an attempt that carries it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Task<'a> {
    pub(crate) job: JobId,
    pub(crate) attempt: &'a Attempt,
    pub(crate) desired: DesiredState,
    /// The job's activity timeout.
    pub(crate) timeout_minutes: Option<NonZeroU32>,
    /// Its idle policy.
    pub(crate) idle_policy: Option<&'a IdlePolicy>,
    pub(crate) is_of_array: bool,
    /// Whether its next attempts are queued ahead.
    pub(crate) prequeue: bool,
    /// Its progress file.
    pub(crate) progress: Option<&'a ProgressFile>,
}

impl<'a> Task<'a> {
    /// The task of a job without an array; `None` before its first attempt.
    pub(crate) fn of(job: &'a Job) -> Option<Self> {
        Some(Self {
            job: job.id,
            attempt: job.attempt.as_ref()?,
            desired: job.desired,
            timeout_minutes: job.spec.timeout_minutes,
            idle_policy: job.spec.idle_policy.as_ref(),
            is_of_array: job.spec.array.is_some(),
            prequeue: job.spec.restart.prequeue,
            progress: job.spec.progress.as_ref(),
        })
    }
}
