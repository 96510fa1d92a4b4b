//! A job as it is stored: its attempts, its status, and where its files lie.

pub(crate) mod active_job;
pub(crate) mod attempt;
pub(crate) mod checkpoint;
pub(crate) mod id;
pub(crate) mod log_file;
pub(crate) mod log_position;
pub(crate) mod paths;
pub(crate) mod removal;
pub(crate) mod resend;
pub(crate) mod status;
pub(crate) mod stored;
pub(crate) mod submit_fence;
