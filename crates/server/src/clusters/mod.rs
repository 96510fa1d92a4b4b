//! The clusters of this process: their settings as they change, and the connections to them.

pub(crate) mod connections;
pub(crate) mod registry;
pub(crate) mod stranded;
