//! The sources of time and of new ids. They are created here once and passed to all other code.

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
    #[expect(clippy::disallowed_methods, reason = "all other code asks this clock")]
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
pub(crate) const REFRESH_INTERVAL: Duration = Duration::from_secs(15);
/// A larger offset of the machine's clock is logged.
const MAX_OFFSET: TimeDelta = TimeDelta::seconds(5);

/// The database's clock. Processes compare timestamps that other processes have stored, so all of them use one clock: those
/// of the machines may be an hour apart, or jump.
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
    /// Asks the database once. Until it answers, this is the machine's clock.
    pub(crate) async fn of(store: &Store) -> Self {
        let clock = Self::set(SystemClock.now());
        clock.refresh(store).await;
        clock
    }

    fn set(time: Timestamp) -> Self {
        let now = SystemClock.uptime();
        Self { known: Mutex::new(ServerClock::new(time, now, now)), warned: Mutex::default() }
    }

    fn known(&self) -> MutexGuard<'_, ServerClock> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Asks the database for its time. While it does not answer, the clock runs on by this process's monotonic time.
    pub(crate) async fn refresh(&self, store: &Store) {
        let asked = self.uptime();
        match store.now().await {
            Ok(time) => self.hear(time, asked),
            Err(error) => tracing::warn!(%error, "cannot read the database's time"),
        }
        self.compare();
    }

    /// Reports the offset of the machine's clock. Only the timestamps of the logs depend on that clock.
    fn compare(&self) {
        let offset = SystemClock.now() - self.now();
        metrics::gauge!("tao_slurm_clock_offset_seconds").set(offset.as_seconds_f64());
        let mut warned = self.warned.lock().unwrap_or_else(PoisonError::into_inner);
        let is_large = offset.abs() > MAX_OFFSET;
        if is_large && !*warned {
            tracing::warn!(
                offset_seconds = offset.as_seconds_f64(),
                "this machine's clock differs from the database's; jobs use the database's clock"
            );
        }
        *warned = is_large;
    }
}

/// Random ids.
#[derive(Debug, Clone, Copy)]
pub(crate) struct RandomIds;

impl Ids for RandomIds {
    #[expect(clippy::disallowed_methods, reason = "all other code asks this source")]
    fn job(&self) -> Uuid {
        Uuid::now_v7()
    }

    #[expect(clippy::disallowed_methods, reason = "all other code asks this source")]
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
    fn the_database_clock_overrides_the_machine_clock() {
        let clock = SharedClock::set(DATABASE);
        assert!(is_about(&clock, DATABASE), "{}", clock.now());
        for off in [TimeDelta::hours(1), TimeDelta::hours(-1)] {
            clock.hear(DATABASE + off, clock.uptime());
            assert!(is_about(&clock, DATABASE + off), "{}", clock.now());
        }
    }
}
