//! The time that everybody goes by, carried on between two moments at which it was heard.

use std::time::Duration;

use chrono::TimeDelta;

use crate::Timestamp;

/// An answer that took longer says too little.
const SLOWEST_ANSWER: Duration = Duration::from_secs(2);

/// What a process knows of the time: what it was told at an uptime, and how long it has run since.
#[derive(Debug, Clone, Copy)]
pub struct Reckoning {
    told: Timestamp,
    at: Duration,
    asked: Duration,
}

impl Reckoning {
    /// Begins with a time that was asked for at one uptime and was there at another.
    pub fn new(time: Timestamp, asked: Duration, answered: Duration) -> Self {
        // The answer was made somewhere between the two.
        let told = time + time_delta(answered.saturating_sub(asked) / 2);
        Self { told, at: answered, asked }
    }

    /// Believes an answer if it came soon enough, and if no younger one has been heard: of two, the one that was asked for
    /// last cannot be older than the other, whatever the process slept through before it read them.
    pub fn hear(&mut self, time: Timestamp, asked: Duration, answered: Duration) {
        if asked >= self.asked && answered.saturating_sub(asked) <= SLOWEST_ANSWER {
            *self = Self::new(time, asked, answered);
        }
    }

    /// The time at an uptime.
    pub fn at(&self, uptime: Duration) -> Timestamp {
        self.told + time_delta(uptime.saturating_sub(self.at))
    }
}

fn time_delta(time: Duration) -> TimeDelta {
    TimeDelta::from_std(time).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOON: Timestamp = Timestamp::UNIX_EPOCH;

    fn seconds(count: u32) -> Duration {
        Duration::from_secs(count.into())
    }

    fn known() -> Reckoning {
        Reckoning::new(NOON, seconds(10), seconds(10))
    }

    #[test]
    fn time_goes_on_between_two_answers() {
        assert_eq!(known().at(seconds(15)), NOON + TimeDelta::seconds(5));
    }

    #[test]
    fn what_is_heard_counts_however_far_off_it_is() {
        for off in [TimeDelta::hours(1), TimeDelta::hours(-1)] {
            let mut time = known();
            time.hear(NOON + off, seconds(12), seconds(13));
            assert_eq!(time.at(seconds(13)), NOON + off + TimeDelta::milliseconds(500));
        }
    }

    #[test]
    fn an_answer_that_took_too_long_is_not_believed() {
        let mut time = known();
        time.hear(NOON + TimeDelta::hours(1), seconds(12), seconds(15));
        assert_eq!(time.at(seconds(15)), NOON + TimeDelta::seconds(5));
    }

    #[test]
    fn an_answer_that_was_asked_for_earlier_is_not_believed_after_a_younger_one() {
        let mut time = known();
        // The machine was stopped for an hour while both were on their way.
        time.hear(NOON + TimeDelta::hours(1), seconds(12), seconds(12));
        time.hear(NOON + TimeDelta::seconds(1), seconds(11), seconds(12));
        assert_eq!(time.at(seconds(12)), NOON + TimeDelta::hours(1));
    }
}
