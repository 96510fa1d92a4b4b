//! Test support: a job to start from, a clock that is moved by hand, ids that count, and a cluster that remembers
//! what was done to it and can lose its replies. Never shipped: only ever a dev-dependency.

mod clock;
mod fake_cluster;
mod jobs;

pub use clock::{CountingIds, HandClock};
pub use fake_cluster::{FakeCluster, Fault, Unanswered};
pub use jobs::{cluster, command_job, job_at, spec, tao_job};
