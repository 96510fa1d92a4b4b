//! The logs of a job: a window of lines at a place, or the end of the log as it grows.

mod choice;
mod file;
mod follow;
mod part;
mod search;
mod window;

pub(crate) use file::file;
pub(crate) use follow::follow;
pub(crate) use window::window;
