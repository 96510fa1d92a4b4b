//! What a job says of itself in its status files.

pub(crate) mod eta;
pub(crate) mod status_file;
pub(crate) mod status_files;
pub(crate) mod summary;
