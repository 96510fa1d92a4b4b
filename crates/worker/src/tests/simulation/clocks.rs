//! The present moment of a history, as it is and as its workers' machines show it.

use std::{
    sync::{Mutex, PoisonError},
    time::Duration,
};

use chrono::{DateTime, TimeDelta};
use domain::{Clock, ServerClock, Timestamp};
use tokio::time::Instant;

use super::world::Process;

/// The clock of the database, which is always right.
#[derive(Debug, Clone, Copy)]
pub(in crate::tests) struct VirtualClock(Instant);

impl VirtualClock {
    pub(in crate::tests) fn new() -> Self {
        Self(Instant::now())
    }
}

impl Clock for VirtualClock {
    fn now(&self) -> Timestamp {
        let passed = TimeDelta::from_std(self.0.elapsed()).unwrap_or(TimeDelta::MAX);
        DateTime::from_timestamp(1_800_000_000, 0).unwrap_or_default() + passed
    }

    fn uptime(&self) -> Duration {
        self.0.elapsed()
    }

    fn hear(&self, _: Timestamp, _: Duration) {}
}

/// The clock of a worker, who hears the time only now and then, and not quite right; it stands still with its machine.
#[derive(Debug)]
pub(super) struct WorkersClock {
    right: VirtualClock,
    process: Process,
    ahead: TimeDelta,
    known: Mutex<ServerClock>,
}

impl WorkersClock {
    pub(super) fn new(right: VirtualClock, process: Process, ahead: TimeDelta) -> Self {
        let known = ServerClock::new(right.now() + ahead, Duration::ZERO, Duration::ZERO);
        Self { right, process, ahead, known: Mutex::new(known) }
    }
}

impl Clock for WorkersClock {
    fn now(&self) -> Timestamp {
        let uptime = self.uptime();
        self.known.lock().unwrap_or_else(PoisonError::into_inner).at(uptime)
    }

    fn uptime(&self) -> Duration {
        self.right.uptime().saturating_sub(self.process.world.stood(self.process.worker))
    }

    fn hear(&self, time: Timestamp, asked: Duration) {
        let uptime = self.uptime();
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        known.hear(time + self.ahead, asked, uptime);
    }
}
