//! Test support: jobs to start from, a clock that is moved by hand, ids that count, a store without a database, an
//! issuer of tokens, and two clusters: one that does as a test says and can lose its replies, and one that lives by itself. Never shipped: only
//! ever a dev-dependency.

mod answer_to;
mod clock;
mod dice;
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
