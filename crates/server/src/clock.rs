//! Where the present moment and new identities come from: made here once, passed in everywhere else.

use std::{
    sync::{Mutex, PoisonError},
    time::{Duration, Instant},
};

use chrono::{TimeDelta, Utc};
use domain::{Clock, Ids, Timestamp};
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
}

/// How often the database is asked for its time.
pub(crate) const ASK_EVERY: Duration = Duration::from_secs(15);
/// An answer that took longer says too little.
const SLOWEST_ANSWER: Duration = Duration::from_secs(2);
/// A machine whose clock is further off is somebody's mistake.
const NOTABLE: TimeDelta = TimeDelta::seconds(5);

/// The database's clock. What one process writes down another compares with its own "now", so all of them have to mean
/// the same; the machines' own clocks may be an hour apart, or jump.
#[derive(Debug)]
pub(crate) struct SharedClock {
    /// The database's time at a moment of this process.
    known: Mutex<(Timestamp, Instant)>,
    warned: Mutex<bool>,
}

impl Clock for SharedClock {
    fn now(&self) -> Timestamp {
        let (time, at) = *self.known.lock().unwrap_or_else(PoisonError::into_inner);
        time + TimeDelta::from_std(at.elapsed()).unwrap_or_default()
    }
}

impl SharedClock {
    /// Asks the database once. If it does not answer, the machine's time has to do until it does.
    pub(crate) async fn of(store: &Store) -> Self {
        let clock = Self::set(SystemClock.now(), Instant::now());
        clock.ask(store).await;
        clock
    }

    fn set(time: Timestamp, asked: Instant) -> Self {
        Self { known: Mutex::new((half_way(time, asked), Instant::now())), warned: Mutex::default() }
    }

    /// Asks again. While the database does not answer, time goes on as this process counts it.
    pub(crate) async fn ask(&self, store: &Store) {
        let asked = Instant::now();
        match store.now().await {
            Ok(time) => self.hear(time, asked),
            Err(error) => tracing::warn!(%error, "the database does not tell its time"),
        }
        self.compare();
    }

    fn hear(&self, time: Timestamp, asked: Instant) {
        if asked.elapsed() <= SLOWEST_ANSWER {
            *self.known.lock().unwrap_or_else(PoisonError::into_inner) =
                (half_way(time, asked), Instant::now());
        }
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

/// The answer was made somewhere between the question and now.
fn half_way(time: Timestamp, asked: Instant) -> Timestamp {
    time + TimeDelta::from_std(asked.elapsed() / 2).unwrap_or_default()
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
        let clock = SharedClock::set(DATABASE, Instant::now());
        assert!(is_about(&clock, DATABASE), "{}", clock.now());
        for off in [TimeDelta::hours(1), TimeDelta::hours(-1)] {
            clock.hear(DATABASE + off, Instant::now());
            assert!(is_about(&clock, DATABASE + off), "{}", clock.now());
        }
    }

    #[test]
    fn an_answer_that_took_too_long_is_not_believed() {
        let clock = SharedClock::set(DATABASE, Instant::now());
        let Some(long_ago) = Instant::now().checked_sub(Duration::from_secs(3)) else { return };
        clock.hear(DATABASE + TimeDelta::hours(1), long_ago);
        assert!(is_about(&clock, DATABASE), "{}", clock.now());
    }

    #[test]
    fn time_goes_on_between_two_answers() {
        let Some(before) = Instant::now().checked_sub(Duration::from_secs(10)) else { return };
        let clock = SharedClock { known: Mutex::new((DATABASE, before)), warned: Mutex::default() };
        assert!(is_about(&clock, DATABASE + TimeDelta::seconds(10)), "{}", clock.now());
    }
}
