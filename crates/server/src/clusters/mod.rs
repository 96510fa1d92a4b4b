//! The clusters of this process: their settings as they change, and the connections to them.

pub(crate) mod connections;
mod link_report;
mod preflight;
pub(crate) mod registry;
pub(crate) mod stranded;
