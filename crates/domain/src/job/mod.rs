//! A job as it is stored: its attempts, its status, its transitions, and the paths of its files.

pub(crate) mod ahead;
pub(crate) mod array;
pub(crate) mod attempt;
pub(crate) mod checkpoint;
pub(crate) mod cleanup;
pub(crate) mod failure;
pub(crate) mod identity;
pub(crate) mod log_excerpt;
pub(crate) mod logs;
pub(crate) mod paths;
pub(crate) mod pipeline;
pub(crate) mod results;
pub(crate) mod retry_request;
pub(crate) mod rewrites;
pub(crate) mod run;
pub(crate) mod status;
pub(crate) mod stored;
pub(crate) mod submit_fence;
pub(crate) mod summary;
pub(crate) mod tally;
pub(crate) mod task_selection;
pub(crate) mod transitions;
