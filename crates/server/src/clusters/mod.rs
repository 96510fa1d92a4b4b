//! The clusters of this process: their SSH pools, links and health, as they come and go.

pub(crate) mod links;
pub(crate) mod log_links;
pub(crate) mod operations;
pub(crate) mod runtime;
pub(crate) mod stranded;
