//! The version of the database schema: which programs may run on it, and the ways up and back.

pub(crate) mod migrate;
pub(crate) mod version;
