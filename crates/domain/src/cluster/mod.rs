//! A cluster: its name, its defaults and policies, and its preflight checks.

pub(crate) mod idle;
pub(crate) mod key_name;
pub(crate) mod mount;
pub(crate) mod policy;
pub mod preflight;
pub(crate) mod resources;
pub(crate) mod rpc_budget;
pub(crate) mod target;
