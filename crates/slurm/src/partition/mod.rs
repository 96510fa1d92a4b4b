//! Partitions: their limits, nodes and GPUs.

pub(crate) mod associations;
pub(crate) mod gres;
pub(crate) mod info;
pub(crate) mod list;
pub(crate) mod sinfo;
