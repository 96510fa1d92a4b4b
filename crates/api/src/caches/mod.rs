//! Caches and batches of the reads that many callers share.

pub(crate) mod job_reads;
pub(crate) mod known_clusters;
pub(crate) mod log_reads;
pub(crate) mod remembered;
