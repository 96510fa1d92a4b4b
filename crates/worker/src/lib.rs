//! The loop: lease, observe, decide, act, record.
//!
//! For each cluster two lanes of steps (submissions, and everything after them) and one poll, each of them one
//! remote command for any number of jobs. What to do is decided in `domain`; this crate only carries it out:
//! it takes a lease, asks `domain`, speaks to the cluster through a [`ClusterLink`], and records the result
//! under the lease's token. There is no retry in here: a job that is still due is simply taken again.

mod cluster_runtime;
mod conversions;
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
    cluster_link::{CallError, ClusterLink, LinkError},
    ssh_link::SshLink,
    timeline::{Timeline, TimelineWriter},
};
pub use pace::Pace;
pub use worker::{Worker, WorkerError, WorkerSettings};

/// What the store returns, unless another error is named.
pub(crate) type Result<T = (), E = persistence::StoreError> = std::result::Result<T, E>;
