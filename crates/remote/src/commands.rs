//! The remote commands: one file for each, with its program under `programs/`.

/// A program: its parts in `programs`, in this order.
macro_rules! program {
    ($($part:literal),+) => { concat!($(include_str!(concat!("../programs/", $part, ".sh"))),+) };
}

mod allocations;
pub(crate) mod arrays;
mod cancel;
mod check_images;
mod checkpoints;
mod conclude;
mod error_lines;
mod exclude;
mod install_credentials;
mod locate;
pub(crate) mod markers;
mod node_health;
mod partitions;
mod poll;
mod preflight;
mod purge;
mod read_logs;
mod remove;
mod reports;
mod requeued;
mod results;
mod search_logs;
pub(crate) mod status;
mod submit_batch;
mod test_only;
mod usage;

pub use allocations::*;
pub use arrays::*;
pub use cancel::*;
pub use check_images::*;
pub use checkpoints::*;
pub use conclude::*;
pub use error_lines::*;
pub use exclude::*;
pub use install_credentials::*;
pub use locate::*;
pub use markers::*;
pub use node_health::*;
pub use partitions::*;
pub use poll::*;
pub use preflight::*;
pub use purge::*;
pub use read_logs::*;
pub use remove::*;
pub use reports::*;
pub use requeued::*;
pub use results::*;
pub use search_logs::*;
pub use status::*;
pub use submit_batch::*;
pub use test_only::*;
pub use usage::*;

/// Room for the parts of an answer whose size is fixed: stderr excerpts and the format's own lines.
const STDOUT_BASE: usize = 256 * 1024;

/// The size of so many bytes in base64, with the line around them.
const fn encoded(bytes: usize) -> usize {
    bytes.saturating_add(bytes / 3).saturating_add(64)
}
