//! A job in Slurm: the next step of a due job, its submission, what a poll observed, and how it ended.

pub(crate) mod activity;
pub(crate) mod conclude;
pub(crate) mod diagnosis;
pub(crate) mod evidence;
pub(crate) mod exclusion;
pub(crate) mod first_cause;
pub(crate) mod graces;
pub(crate) mod idle;
pub(crate) mod log_lines;
pub(crate) mod needs;
pub(crate) mod observe;
pub(crate) mod orphans;
pub(crate) mod pending;
pub(crate) mod plan;
#[cfg(test)]
mod recorded_tests;
pub(crate) mod reports;
pub(crate) mod requeue;
pub(crate) mod results;
pub(crate) mod retry;
pub(crate) mod sentence;
pub(crate) mod status_lines;
pub(crate) mod submission;
pub(crate) mod task;
pub(crate) mod tasks;
