//! Clusters that are stored in the database, and what clusters report about their partitions.

pub(crate) mod partitions;
pub(crate) mod rpc_budgets;
pub(crate) mod stored;
