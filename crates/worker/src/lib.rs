//! The loop: lease, observe, decide, act, record.
//!
//! Each cluster has two lanes of steps (submissions, and everything after them) and one poll.
//! Each step is one remote command for any number of jobs. `domain` decides what to do. This crate takes a lease, runs the
//! command through a [`ClusterLink`], and records the result under the lease's token. It has no retry logic: a job that is
//! still due is taken again.

mod allocations;
mod cluster_runtime;
mod keep_alive;
mod link;
mod pace;
mod partitions;
mod poll;
mod steps;
#[cfg(test)]
mod tests;
mod worker;

pub use cluster_runtime::ClusterTarget;
pub use link::{
    cluster_link::{CallError, ClusterLink, LinkError, Meter},
    metered::Metered,
    ssh_link::SshLink,
    timeline::{Timeline, TimelineWriter},
};
pub use pace::Pace;
pub use worker::{Worker, WorkerError, WorkerSettings};

/// What the store returns, unless another error is named.
pub(crate) type Result<T = (), E = persistence::StoreError> = std::result::Result<T, E>;
