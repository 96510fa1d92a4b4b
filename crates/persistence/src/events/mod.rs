//! What happened: each job's events, the feed of all jobs, and the timeline of remote commands.

pub(crate) mod feed;
pub(crate) mod of_job;
pub(crate) mod timeline;
