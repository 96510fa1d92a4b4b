//! Jobs and their attempts: inserted, read, leased, changed by owners and by steps, deleted.

pub(crate) mod attempts;
pub(crate) mod deletions;
pub(crate) mod desired_state;
pub(crate) mod documents;
pub(crate) mod failures;
pub(crate) mod insert;
pub(crate) mod lane;
pub(crate) mod leases;
pub(crate) mod listing;
pub(crate) mod needs;
pub(crate) mod queries;
pub(crate) mod results;
pub(crate) mod rows;
pub(crate) mod stats;
pub(crate) mod steps;
pub(crate) mod tasks;
pub(crate) mod usage;
