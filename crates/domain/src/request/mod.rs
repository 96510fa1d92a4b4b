//! What a caller asks for: the request as it is sent, and the specification that it becomes.

pub(crate) mod body;
pub(crate) mod container_job;
pub mod cosmos;
pub(crate) mod datasets;
#[cfg(test)]
pub(crate) mod edge_tests;
pub mod limits;
pub(crate) mod secret;
pub(crate) mod spec;
pub(crate) mod text;
pub(crate) mod uri;
pub(crate) mod warnings;
pub(crate) mod webhook;
