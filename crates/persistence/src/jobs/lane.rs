//! Lanes: steps that do not wait for each other.

use domain::Phase;
use strum::{Display, EnumString};

/// Steps of two lanes run side by side: a slow submission does not hold up the end of other jobs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Display, EnumString)]
#[strum(serialize_all = "snake_case")]
pub enum Lane {
    /// Jobs that have nothing on the cluster: not yet, or no longer.
    Submit,
    /// All later steps.
    Follow,
}

impl Lane {
    /// The lane of a job's steps in this phase. The statements in `leases` list the same phases.
    pub fn of(phase: Phase) -> Self {
        match phase {
            Phase::Waiting
            | Phase::Queued
            | Phase::ConvertingImage
            | Phase::Submitting
            | Phase::RetryWait
            | Phase::Paused => Self::Submit,
            Phase::SubmitUncertain
            | Phase::InQueue
            | Phase::Running
            | Phase::Suspended
            | Phase::Finishing
            | Phase::Ended => Self::Follow,
        }
    }
}
