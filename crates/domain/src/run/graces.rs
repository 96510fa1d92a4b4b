//! The time limits behind decisions about a job in Slurm.

use chrono::TimeDelta;

/// How long evidence may be late before its absence counts.
#[derive(Debug, Clone, Copy)]
pub struct Graces {
    /// For a job that neither squeue nor accounting lists, without interruption.
    pub missing: TimeDelta,
    /// For the exit record and the last status line of a job to become visible on the login host.
    pub finish: TimeDelta,
    /// For a job that has reported SUCCESS or FAILURE to exit, before the service cancels it to free its nodes.
    pub release: TimeDelta,
    pub retry: RetryTerms,
}

impl Default for Graces {
    fn default() -> Self {
        // A shared file system may show a file a minute late, and sacct lags by seconds when it is busy.
        Self {
            missing: TimeDelta::minutes(5),
            finish: TimeDelta::seconds(60),
            release: TimeDelta::minutes(2),
            retry: RetryTerms::default(),
        }
    }
}

/// The terms of automatic retries.
#[derive(Debug, Clone, Copy)]
pub struct RetryTerms {
    /// The wait before the first retry; it doubles with each.
    pub first_wait: TimeDelta,
    pub longest_wait: TimeDelta,
    /// How long a node that failed is excluded.
    pub exclude_for: TimeDelta,
}

impl Default for RetryTerms {
    fn default() -> Self {
        Self {
            first_wait: TimeDelta::seconds(15),
            longest_wait: TimeDelta::minutes(10),
            exclude_for: TimeDelta::hours(24),
        }
    }
}

/// After this long Slurm has noticed a process that runs on a node without its knowledge, or a node that does not answer:
/// the default of `SlurmdTimeout` (slurm.conf(5)).
pub(crate) const SLURMD_TIMEOUT: TimeDelta = TimeDelta::minutes(5);
