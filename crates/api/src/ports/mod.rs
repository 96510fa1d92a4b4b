//! What the API asks of the rest of the process: traits that the composition root implements.

pub(crate) mod cluster_keeper;
pub(crate) mod cluster_links;
pub(crate) mod cluster_ops;
pub(crate) mod link;
pub(crate) mod log_source;
