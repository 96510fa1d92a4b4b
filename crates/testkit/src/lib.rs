//! Test support: jobs, a clock that tests move by hand, consecutive ids, a store without a database, a signer of tokens, and two
//! clusters: one is scripted by the test and can lose its replies, the other simulates Slurm by itself. Only a dev-dependency,
//! never shipped.

mod answer_to;
mod clock;
mod dice;
mod error_lines;
mod fake_cluster;
mod jobs;
mod living_cluster;
mod memory_store;
mod signer;

pub use answer_to::answer_to;
pub use clock::{CountingIds, HandClock};
pub use dice::Dice;
pub use fake_cluster::{FakeCluster, Fault, Unanswered, partitions};
pub use jobs::{cluster, command_job, job_at, spec, tao_job};
pub use living_cluster::{Accepting, LivingCluster, TrueJob, Truth, Weather, Word};
pub use memory_store::{MemoryNotices, MemoryStore, Right, Turn};
pub use signer::Signer;
