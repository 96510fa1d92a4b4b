//! One poll per cluster and tick: ask, observe, record.

pub(crate) mod orphans;
pub(crate) mod tick;
