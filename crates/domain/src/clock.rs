//! Time and identity come from outside, so that every decision can be replayed in a test.

use chrono::{DateTime, Utc};
use uuid::Uuid;

/// A moment in UTC.
pub type Timestamp = DateTime<Utc>;

/// Where the present moment comes from. Made once, by the composition root.
pub trait Clock: std::fmt::Debug + Send + Sync + 'static {
    fn now(&self) -> Timestamp;
}

/// Where new identities come from. Made once, by the composition root.
pub trait Ids: std::fmt::Debug + Send + Sync + 'static {
    /// A job's id: a UUID v7, so that ids sort by age.
    fn job(&self) -> Uuid;
    /// An unguessable UUID v4: the proof of a lease.
    fn lease(&self) -> Uuid;
}
