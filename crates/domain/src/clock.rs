//! Time and identity come from outside, so that every decision can be replayed in a test.

use std::time::Duration;

use chrono::{DateTime, Utc};
use uuid::Uuid;

/// A moment in UTC.
pub type Timestamp = DateTime<Utc>;

/// Where the present moment comes from. Made once, by the composition root.
pub trait Clock: std::fmt::Debug + Send + Sync + 'static {
    fn now(&self) -> Timestamp;

    /// How long this process has run, by a clock that nobody sets. It counts what a process sleeps through when it is
    /// stopped, and does not when its whole machine is: so it may end work early, and proves nothing to anybody else.
    fn uptime(&self) -> Duration;

    /// Hears the time that everybody goes by, which was asked for at this uptime.
    fn hear(&self, time: Timestamp, asked: Duration);
}

/// Where new identities come from. Made once, by the composition root.
pub trait Ids: std::fmt::Debug + Send + Sync + 'static {
    /// A job's id: a UUID v7, so that ids sort by age.
    fn job(&self) -> Uuid;
    /// An unguessable UUID v4: the proof of a lease.
    fn lease(&self) -> Uuid;
}
