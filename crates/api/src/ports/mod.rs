//! Ports: traits that the composition root implements.

pub(crate) mod cluster_keeper;
pub(crate) mod cluster_links;
pub(crate) mod cluster_ops;
pub(crate) mod log_source;
