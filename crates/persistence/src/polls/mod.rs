//! Who polls which cluster, and what the polls observed.

pub(crate) mod observations;
pub(crate) mod orphans;
pub(crate) mod states;
pub(crate) mod turns;
