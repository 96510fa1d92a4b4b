//! Validated texts: names and paths that are safe in scripts and command lines.

pub(crate) mod cuda_version;
pub(crate) mod invalid_name;
pub(crate) mod mail_address;
pub(crate) mod remote_path;
pub(crate) mod text_type;
pub(crate) mod trace_parent;
pub(crate) mod words;
