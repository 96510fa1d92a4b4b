//! What many callers ask for at once, read once for all of them.

pub(crate) mod job_reads;
pub(crate) mod known_clusters;
pub(crate) mod known_partitions;
pub(crate) mod log_reads;
pub(crate) mod pulses;
