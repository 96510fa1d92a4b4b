//! The time that everybody goes by, carried on between two moments at which it was heard.

use std::time::Duration;

use chrono::TimeDelta;

use crate::Timestamp;

/// An answer that took longer says only which time has surely come.
const SLOWEST_ANSWER: Duration = Duration::from_secs(2);

/// What a process knows of the time: what it was told at an uptime, and how long it has run since.
#[derive(Debug, Clone, Copy)]
pub struct ServerClock {
    told: Timestamp,
    at: Duration,
}

impl ServerClock {
    /// Begins with a time that was asked for at one uptime and was there at another.
    pub fn new(time: Timestamp, asked: Duration, answered: Duration) -> Self {
        // The answer was made somewhere between the two.
        let told = time + time_delta(answered.saturating_sub(asked) / 2);
        Self { told, at: answered }
    }

    /// An answer that is later than what was reckoned always counts, for nobody is told a time that has not come. An earlier one
    /// counts if it came soon enough, and was asked for after the last one that counted had been read: one that was on its way
    /// together with that may have been made long before it, whatever the process slept through.
    pub fn hear(&mut self, time: Timestamp, asked: Duration, answered: Duration) {
        let is_soon = answered.saturating_sub(asked) <= SLOWEST_ANSWER;
        if is_soon && asked > self.at {
            *self = Self::new(time, asked, answered);
        } else if time > self.at(answered) {
            *self = Self { told: time, at: answered };
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

    fn known() -> ServerClock {
        ServerClock::new(NOON, seconds(10), seconds(10))
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
    fn an_answer_that_took_too_long_says_only_which_time_has_come() {
        let mut time = known();
        time.hear(NOON - TimeDelta::hours(1), seconds(12), seconds(15));
        assert_eq!(time.at(seconds(15)), NOON + TimeDelta::seconds(5));
        time.hear(NOON + TimeDelta::hours(1), seconds(12), seconds(15));
        assert_eq!(time.at(seconds(15)), NOON + TimeDelta::hours(1), "the machine was stopped meanwhile");
    }

    #[test]
    fn of_answers_that_were_on_their_way_together_the_latest_counts() {
        let (old, new) = (NOON + TimeDelta::seconds(2), NOON + TimeDelta::hours(1));
        // The machine was stopped for an hour while both were on their way; one was made before that, and one after it.
        for (old_asked, new_asked) in [(11, 12), (12, 11), (12, 12)] {
            let mut time = known();
            time.hear(new, seconds(new_asked), seconds(12));
            time.hear(old, seconds(old_asked), seconds(12));
            assert!(time.at(seconds(12)) >= new, "the old one is read last");
            let mut time = known();
            time.hear(old, seconds(old_asked), seconds(12));
            time.hear(new, seconds(new_asked), seconds(12));
            assert!(time.at(seconds(12)) >= new, "the new one is read last");
        }
    }
}
