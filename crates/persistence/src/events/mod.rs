//! What happened: the events of each job, the feed of all jobs, and the timeline of remote commands.

pub(crate) mod feed;
pub(crate) mod job_events;
pub(crate) mod status_lines;
pub(crate) mod timeline;
