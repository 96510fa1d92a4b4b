//! What a cluster is: its name, its defaults and policies, and the judgement of a preflight.

pub(crate) mod identity;
pub(crate) mod key_name;
pub(crate) mod mount;
pub(crate) mod policy;
pub mod preflight;
pub(crate) mod resources;
pub(crate) mod target;
