//! The loop: lease, observe, decide, act, record.
//!
//! For each cluster two lanes of steps (submissions, and everything after them) and one poll, each of them one
//! remote command for any number of jobs. What to do is decided in `domain`; this crate only carries it out:
//! it takes a lease, asks `domain`, speaks to the cluster through a [`ClusterLink`], and records the result
//! under the lease's token. There is no retry in here: a job that is still due is simply taken again.

mod cancel;
mod checkpoints;
mod conclude;
mod conversions;
mod counted;
mod images;
mod keep_alive;
mod link;
mod locate;
mod orphans;
mod pace;
mod partitions;
mod poll;
mod purge;
mod relieve;
mod reroute;
mod ssh_link;
mod steps;
mod submit;
#[cfg(test)]
mod tests;
mod timeline;
mod unsubmitted;
mod worker;

pub use link::{ClusterLink, LinkError};
pub use pace::Pace;
pub use ssh_link::SshLink;
pub use timeline::{Timeline, TimelineWriter};
pub use worker::{ClusterTarget, Worker, WorkerError, WorkerSettings};
