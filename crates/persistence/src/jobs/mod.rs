//! Jobs and their attempts: stored, leased, changed by steps, listed, forgotten.

pub(crate) mod attempt_place;
pub(crate) mod attempts;
pub(crate) mod changes;
pub(crate) mod desired_state;
pub(crate) mod leases;
pub(crate) mod listing;
pub(crate) mod purges;
pub(crate) mod retention;
pub(crate) mod rows;
pub(crate) mod steps;
pub(crate) mod stored;
pub(crate) mod versions;
