//! The right to poll a cluster, and what polls observed.

pub(crate) mod observations;
pub(crate) mod orphans;
pub(crate) mod turns;
