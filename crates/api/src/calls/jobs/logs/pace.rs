//! When a follower reads again.
//!
//! Waits end on a grid that all followers share, so that their reads join one command.

use std::time::Duration;

/// The longest wait for an idle log, in ticks.
const LAZIEST: u32 = 4;
/// The longest wait while the cluster does not answer, in ticks.
const MOST_PATIENT: u32 = 16;

/// The result of the last read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Pace {
    /// More is there, or nothing was read yet.
    AtOnce,
    /// The log has grown and was read to its end.
    Grown,
    /// This many reads in a row returned nothing.
    Silent(u32),
    /// This many reads in a row failed.
    Failing(u32),
}

impl Pace {
    /// The ticks until the next read; none for no wait.
    fn ticks(self) -> Option<u32> {
        match self {
            Self::AtOnce => None,
            Self::Grown => Some(1),
            Self::Silent(looks) => Some(doubled(looks / 4, LAZIEST)),
            Self::Failing(looks) => Some(doubled(looks, MOST_PATIENT)),
        }
    }

    /// How long to wait, `elapsed` after the start of the grid.
    pub(super) fn wait(self, elapsed: Duration, tick: Duration) -> Duration {
        self.ticks().map_or(Duration::ZERO, |ticks| until_next(elapsed, tick.saturating_mul(ticks)))
    }

    pub(super) fn silent(self) -> Self {
        if let Self::Silent(looks) = self { Self::Silent(looks.saturating_add(1)) } else { Self::Silent(1) }
    }

    pub(super) fn failing(self) -> Self {
        if let Self::Failing(looks) = self {
            Self::Failing(looks.saturating_add(1))
        } else {
            Self::Failing(1)
        }
    }

    /// Whether there is time to read the job and to look for new logs.
    pub(super) fn is_idle(self) -> bool {
        !matches!(self, Self::AtOnce)
    }
}

/// Two to the power of `times`, at most `most`.
fn doubled(times: u32, most: u32) -> u32 {
    1_u32.checked_shl(times).unwrap_or(most).min(most)
}

/// The time to the next multiple of `period`, never zero.
fn until_next(elapsed: Duration, period: Duration) -> Duration {
    let period = period.max(Duration::from_millis(1));
    let into = elapsed.as_nanos() % period.as_nanos();
    period.saturating_sub(Duration::from_nanos(u64::try_from(into).unwrap_or(0)))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn an_idle_log_is_read_less_often_and_a_dead_cluster_much_less_often() {
        let ticks = |pace: Pace| pace.ticks().unwrap_or(0);
        assert_eq!(
            [Pace::AtOnce, Pace::Grown, Pace::Silent(1), Pace::Silent(4), Pace::Silent(9)].map(ticks),
            [0, 1, 1, 2, 4]
        );
        assert_eq!([1, 2, 4, 40, u32::MAX].map(|looks| ticks(Pace::Failing(looks))), [2, 4, 16, 16, 16]);
        assert_eq!(ticks(Pace::Silent(u32::MAX)), 4);
        assert_eq!(Pace::Grown.silent().silent(), Pace::Silent(2));
        assert_eq!(Pace::Silent(2).failing().failing(), Pace::Failing(2));
    }

    proptest! {
        #[test]
        fn waits_end_on_the_grid(elapsed in 0_u64..1 << 50, period in 1_u64..20_000) {
            let (elapsed, period) = (Duration::from_nanos(elapsed), Duration::from_millis(period));
            let wait = until_next(elapsed, period);
            prop_assert!(wait > Duration::ZERO && wait <= period);
            prop_assert_eq!((elapsed + wait).as_nanos() % period.as_nanos(), 0);
        }
    }
}
