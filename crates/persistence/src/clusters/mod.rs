//! Clusters that are stored in the database, and what clusters report about their partitions and about what jobs held.

pub(crate) mod allocations;
pub(crate) mod partitions;
pub(crate) mod rpc_budgets;
pub(crate) mod stored;
