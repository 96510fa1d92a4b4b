//! How often a cluster is polled: often while jobs change, rarely otherwise, and never so often that the polls slow the
//! cluster down.

use std::time::Duration;

/// The bounds of the time between two polls of a cluster.
#[derive(Debug, Clone, Copy)]
pub struct Pace {
    pub min: Duration,
    pub max: Duration,
}

/// The last poll.
#[derive(Debug, Clone, Copy)]
pub(crate) struct LastPoll {
    /// The interval before it.
    pub(crate) interval: Duration,
    /// How long it took.
    pub(crate) took: Duration,
    /// Whether a job changed, or is young enough to change soon.
    pub(crate) lively: bool,
}

impl Pace {
    /// The time until the next poll, before jitter.
    pub(crate) fn after(&self, last: LastPoll) -> Duration {
        // A cluster that needs a second for a poll is polled every twenty seconds at most.
        let polite = last.took * 20;
        let wanted = if last.lively { self.min } else { last.interval.mul_f64(1.5) };
        wanted.max(polite).clamp(self.min, self.max)
    }

    /// The time until the next poll after one that failed.
    pub(crate) fn after_failure(&self, interval: Duration) -> Duration {
        (interval * 2).clamp(self.min, self.max.min(Duration::from_secs(15)).max(self.min))
    }
}

/// ±20 %, so that clusters and workers do not poll in step. `random` is from 0 to 1.
pub(crate) fn jittered(interval: Duration, random: f64) -> Duration {
    interval.mul_f64(random.clamp(0.0, 1.0).mul_add(0.4, 0.8))
}

#[cfg(test)]
mod tests {
    use super::*;

    const PACE: Pace = Pace { min: Duration::from_secs(5), max: Duration::from_mins(1) };

    fn after(interval: u64, took_millis: u64, lively: bool) -> Duration {
        let (interval, took) = (Duration::from_secs(interval), Duration::from_millis(took_millis));
        PACE.after(LastPoll { interval, took, lively })
    }

    #[test]
    fn a_quiet_cluster_is_asked_less_and_less_often() {
        assert_eq!(after(5, 10, false), Duration::from_millis(7500));
        assert_eq!(after(50, 10, false), Duration::from_mins(1));
    }

    #[test]
    fn a_lively_cluster_is_asked_at_the_fastest_pace() {
        assert_eq!(after(60, 10, true), Duration::from_secs(5));
    }

    #[test]
    fn a_slow_cluster_is_asked_rarely_however_lively_it_is() {
        assert_eq!(after(5, 1000, true), Duration::from_secs(20));
    }

    #[test]
    fn jitter_stays_within_a_fifth() {
        assert_eq!(jittered(Duration::from_secs(10), 0.0), Duration::from_secs(8));
        assert_eq!(jittered(Duration::from_secs(10), 1.0), Duration::from_secs(12));
    }
}
