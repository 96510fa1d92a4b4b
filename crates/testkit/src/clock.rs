//! A clock that a test moves by hand, and consecutive ids.

use std::{
    sync::{
        Mutex,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use chrono::{DateTime, TimeDelta};
use domain::{Clock, Ids, Timestamp};
use uuid::Uuid;

/// A clock that stands still until [`advance`](Self::advance).
#[derive(Debug)]
pub struct HandClock {
    began: Timestamp,
    now: Mutex<Timestamp>,
}

impl HandClock {
    /// Starts at a time that is easy to read in a failed assertion.
    pub fn new() -> Self {
        Self::at(DateTime::from_timestamp(1_800_000_000, 0).unwrap_or_default())
    }

    /// Starts at the given time.
    pub fn at(now: Timestamp) -> Self {
        Self { began: now, now: Mutex::new(now) }
    }

    pub fn advance(&self, by: TimeDelta) {
        if let Ok(mut now) = self.now.lock() {
            *now += by;
        }
    }
}

impl Default for HandClock {
    fn default() -> Self {
        Self::new()
    }
}

impl Clock for HandClock {
    fn now(&self) -> Timestamp {
        self.now.lock().map_or(DateTime::UNIX_EPOCH, |now| *now)
    }

    fn uptime(&self) -> Duration {
        (self.now() - self.began).to_std().unwrap_or_default()
    }

    /// Does nothing: only the test moves this clock.
    fn hear(&self, _: Timestamp, _: Duration) {}
}

/// Consecutive ids in the form of UUIDs v7: 1, 2, 3 … A failed assertion shows the number.
#[derive(Debug, Default)]
pub struct CountingIds(AtomicU64);

const FIRST_ID: u128 = 0x0190_0000_0000_7000_8000_0000_0000_0001;

impl CountingIds {
    fn next(&self) -> Uuid {
        Uuid::from_u128(FIRST_ID + u128::from(self.0.fetch_add(1, Ordering::Relaxed)))
    }
}

impl Ids for CountingIds {
    fn job(&self) -> Uuid {
        self.next()
    }

    fn lease(&self) -> Uuid {
        self.next()
    }
}
