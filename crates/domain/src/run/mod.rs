//! What becomes of a job: what to do next, what a poll observed, how an attempt ended, and whether to try again.

pub(crate) mod activity;
pub(crate) mod conclude;
pub(crate) mod diagnosis;
pub(crate) mod exclusion;
pub(crate) mod observe;
pub(crate) mod orphans;
pub(crate) mod pending;
pub(crate) mod purge;
#[cfg(test)]
pub(crate) mod recorded_tests;
pub(crate) mod reroute;
pub(crate) mod retry;
pub(crate) mod settle;
pub(crate) mod submission;
