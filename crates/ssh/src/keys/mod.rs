//! Keys: ours, which log us in, and the hosts', which are always verified.

pub(crate) mod auth;
pub(crate) mod host_key;
pub(crate) mod key_file;
pub(crate) mod known_hosts;
