//! Clusters that are kept in the database, and their partitions.

pub(crate) mod kept;
pub(crate) mod partitions;
