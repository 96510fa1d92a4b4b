//! The progress of a job, from the status files that it writes.

mod downsample;
pub(crate) mod eta;
pub(crate) mod series;
pub(crate) mod status_file;
pub(crate) mod status_files;
pub(crate) mod summary;
pub(crate) mod usage;
