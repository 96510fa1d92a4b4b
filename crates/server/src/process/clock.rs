//! Where the present moment and new identities come from: made here once, passed in everywhere else.

use std::{
    sync::{LazyLock, Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

use chrono::{TimeDelta, Utc};
use domain::{Clock, Ids, ServerClock, Timestamp};
use persistence::Store;
use uuid::Uuid;

/// The machine's clock.
#[derive(Debug, Clone, Copy)]
pub(crate) struct SystemClock;

impl Clock for SystemClock {
    #[expect(clippy::disallowed_methods, reason = "this is the clock that everybody else is told to ask")]
    fn now(&self) -> Timestamp {
        Utc::now()
    }

    fn uptime(&self) -> Duration {
        static BEGAN: LazyLock<Instant> = LazyLock::new(Instant::now);
        BEGAN.elapsed()
    }

    fn hear(&self, _: Timestamp, _: Duration) {}
}

/// How often the database is asked for its time.
pub(crate) const ASK_EVERY: Duration = Duration::from_secs(15);
/// A machine whose clock is further off is somebody's mistake.
const NOTABLE: TimeDelta = TimeDelta::seconds(5);

/// The database's clock. What one process writes down another compares with its own "now", so all of them have to mean
/// the same; the machines' own clocks may be an hour apart, or jump.
#[derive(Debug)]
pub(crate) struct SharedClock {
    known: Mutex<ServerClock>,
    warned: Mutex<bool>,
}

impl Clock for SharedClock {
    fn now(&self) -> Timestamp {
        self.known().at(self.uptime())
    }

    fn uptime(&self) -> Duration {
        SystemClock.uptime()
    }

    fn hear(&self, time: Timestamp, asked: Duration) {
        self.known().hear(time, asked, self.uptime());
    }
}

impl SharedClock {
    /// Asks the database once. If it does not answer, the machine's time has to do until it does.
    pub(crate) async fn of(store: &Store) -> Self {
        let clock = Self::set(SystemClock.now());
        clock.ask(store).await;
        clock
    }

    fn set(time: Timestamp) -> Self {
        let now = SystemClock.uptime();
        Self { known: Mutex::new(ServerClock::new(time, now, now)), warned: Mutex::default() }
    }

    fn known(&self) -> MutexGuard<'_, ServerClock> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Asks again. While the database does not answer, time goes on as this process counts it.
    pub(crate) async fn ask(&self, store: &Store) {
        let asked = self.uptime();
        match store.now().await {
            Ok(time) => self.hear(time, asked),
            Err(error) => tracing::warn!(%error, "the database does not tell its time"),
        }
        self.compare();
    }

    /// Tells how far off the machine's own clock is: nothing depends on it but what people read in its logs.
    fn compare(&self) {
        let off = SystemClock.now() - self.now();
        metrics::gauge!("clock_offset_seconds").set(off.as_seconds_f64());
        let mut warned = self.warned.lock().unwrap_or_else(PoisonError::into_inner);
        let notable = off.abs() > NOTABLE;
        if notable && !*warned {
            tracing::warn!(
                offset_seconds = off.as_seconds_f64(),
                "this machine's clock is not the database's; jobs go by the database's"
            );
        }
        *warned = notable;
    }
}

/// Identities from the machine's randomness.
#[derive(Debug, Clone, Copy)]
pub(crate) struct RandomIds;

impl Ids for RandomIds {
    #[expect(clippy::disallowed_methods, reason = "this is the source that everybody else is told to ask")]
    fn job(&self) -> Uuid {
        Uuid::now_v7()
    }

    #[expect(clippy::disallowed_methods, reason = "this is the source that everybody else is told to ask")]
    fn lease(&self) -> Uuid {
        Uuid::new_v4()
    }
}

#[cfg(test)]
mod tests {
    use chrono::DateTime;

    use super::*;

    const DATABASE: Timestamp = DateTime::UNIX_EPOCH;

    fn is_about(clock: &SharedClock, expected: Timestamp) -> bool {
        (clock.now() - expected).abs() < TimeDelta::seconds(1)
    }

    #[test]
    fn the_databases_time_counts_however_far_off_the_machines_is() {
        let clock = SharedClock::set(DATABASE);
        assert!(is_about(&clock, DATABASE), "{}", clock.now());
        for off in [TimeDelta::hours(1), TimeDelta::hours(-1)] {
            clock.hear(DATABASE + off, clock.uptime());
            assert!(is_about(&clock, DATABASE + off), "{}", clock.now());
        }
    }
}
