//! The way to a cluster: one method, over SSH. Each command goes into the timeline.

pub(crate) mod cluster_link;
pub(crate) mod counted;
pub(crate) mod metered;
pub(crate) mod ssh_link;
pub(crate) mod timeline;
