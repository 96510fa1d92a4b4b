//! One poll per cluster and tick: poll, observe, record.

pub(crate) mod orphans;
pub(crate) mod tick;
