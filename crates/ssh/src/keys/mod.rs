//! Keys: ours, which the host accepts, and the host's, which are always verified.

pub(crate) mod auth;
pub(crate) mod host_key;
pub(crate) mod key_file;
pub(crate) mod known_hosts;
