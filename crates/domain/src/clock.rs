//! Time and identity come from outside the domain, so that a test can replay every decision.

use std::time::Duration;

use chrono::{DateTime, TimeDelta, Utc};
use uuid::Uuid;

/// A moment in UTC.
pub type Timestamp = DateTime<Utc>;

/// Whether what is done every so many seconds is due: their number has come round since the last time.
pub fn comes_round(every: i64, last: Option<Timestamp>, now: Timestamp) -> bool {
    let round = |at: Timestamp| at.timestamp().div_euclid(every.max(1));
    last.is_none_or(|last| round(last) != round(now))
}

/// The source of the present time. The composition root creates the only one.
pub trait Clock: std::fmt::Debug + Send + Sync + 'static {
    fn now(&self) -> Timestamp;

    /// How long this process has run, by a monotonic clock. It includes the time for which the process was stopped, but
    /// not a suspension of its whole machine: so it may end work early, and it proves nothing to other processes.
    fn uptime(&self) -> Duration;

    /// Takes in Postgres's time, which was requested at this uptime.
    fn hear(&self, time: Timestamp, asked: Duration);
}

/// The source of new identities. The composition root creates the only one.
pub trait Ids: std::fmt::Debug + Send + Sync + 'static {
    /// A job's id: a UUID v7, so that ids sort by age.
    fn job(&self) -> Uuid;
    /// An unguessable UUID v4: the proof of a lease.
    fn lease(&self) -> Uuid;
}

/// A reply that took longer gives only a lower bound of the time.
const SLOWEST_ANSWER: Duration = Duration::from_secs(2);

/// Postgres's time, extrapolated between two replies with this process's uptime.
#[derive(Debug, Clone, Copy)]
pub struct ServerClock {
    time: Timestamp,
    at: Duration,
}

impl ServerClock {
    /// Starts from a reply that was requested at one uptime and arrived at another.
    pub fn new(time: Timestamp, asked: Duration, answered: Duration) -> Self {
        // The server read its clock somewhere between the two.
        let time = time + time_delta(answered.saturating_sub(asked) / 2);
        Self { time, at: answered }
    }

    /// Takes in a reply.
    ///
    /// A reply that is later than the extrapolated time always counts, since a server never reports a time that has not
    /// come. An earlier one counts only if it arrived quickly, and if its request followed the last reply that counted: two
    /// requests in flight at once may have been answered long apart, for instance when the process was stopped.
    pub fn hear(&mut self, time: Timestamp, asked: Duration, answered: Duration) {
        let is_quick = answered.saturating_sub(asked) <= SLOWEST_ANSWER;
        if is_quick && asked > self.at {
            *self = Self::new(time, asked, answered);
        } else if time > self.at(answered) {
            *self = Self { time, at: answered };
        }
    }

    /// The time at an uptime.
    pub fn at(&self, uptime: Duration) -> Timestamp {
        self.time + time_delta(uptime.saturating_sub(self.at))
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
    fn time_advances_between_two_replies() {
        assert_eq!(known().at(seconds(15)), NOON + TimeDelta::seconds(5));
    }

    #[test]
    fn a_quick_reply_counts_however_far_off_it_is() {
        for off in [TimeDelta::hours(1), TimeDelta::hours(-1)] {
            let mut time = known();
            time.hear(NOON + off, seconds(12), seconds(13));
            assert_eq!(time.at(seconds(13)), NOON + off + TimeDelta::milliseconds(500));
        }
    }

    #[test]
    fn a_slow_reply_only_gives_a_lower_bound() {
        let mut time = known();
        time.hear(NOON - TimeDelta::hours(1), seconds(12), seconds(15));
        assert_eq!(time.at(seconds(15)), NOON + TimeDelta::seconds(5));
        time.hear(NOON + TimeDelta::hours(1), seconds(12), seconds(15));
        assert_eq!(time.at(seconds(15)), NOON + TimeDelta::hours(1), "the machine was stopped meanwhile");
    }

    #[test]
    fn the_latest_of_several_replies_in_flight_counts() {
        let (old, new) = (NOON + TimeDelta::seconds(2), NOON + TimeDelta::hours(1));
        // The machine was stopped for an hour while both were in flight; the server made one before that, and one after.
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
