//! The job's own time limit.

use std::{fmt, str::FromStr};

use serde_with::{DeserializeFromStr, SerializeDisplay};

use crate::{InvalidName, number::round_up, time::wall_time::seconds_of};

const KIND: &str = "run time";

/// How long a program may run before the batch script ends it: whole seconds, at least one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, SerializeDisplay, DeserializeFromStr)]
pub struct RunTime(u32);

impl RunTime {
    /// A number of seconds; `None` for zero.
    pub const fn from_seconds(seconds: u32) -> Option<Self> {
        if seconds == 0 { None } else { Some(Self(seconds)) }
    }

    /// A number of hours, rounded up to a whole second, like [`WallTime::from_hours`](crate::WallTime::from_hours).
    pub fn from_hours(hours: f64) -> Result<Self, InvalidName> {
        round_up(hours * 3600.0, 1e-4, u32::MAX)
            .map(Self)
            .ok_or_else(|| InvalidName::new(KIND, "a number of hours above zero", &hours.to_string()))
    }

    /// The time in seconds.
    pub const fn seconds(self) -> u32 {
        self.0
    }
}

impl fmt::Display for RunTime {
    /// `HH:MM:SS`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:02}:{:02}:{:02}", self.0 / 3600, self.0 / 60 % 60, self.0 % 60)
    }
}

impl FromStr for RunTime {
    type Err = InvalidName;

    /// The same formats as [`WallTime`](crate::WallTime).
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        seconds_of(text)
            .and_then(|seconds| u32::try_from(seconds).ok())
            .and_then(Self::from_seconds)
            .ok_or_else(|| InvalidName::new(KIND, "H:M:S, above zero", text))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use test_case::test_case;

    use super::*;

    #[test_case(3.8, 13_680; "the usual one, just below in binary")]
    #[test_case(0.01, 36; "less than a minute")]
    #[test_case(0.0001, 1; "a part of a second becomes one")]
    fn hours_become_seconds(hours: f64, seconds: u32) {
        assert_eq!(RunTime::from_hours(hours).unwrap().seconds(), seconds);
    }

    #[test]
    fn hours_that_are_no_time_are_refused() {
        for hours in [0.0, -1.0, f64::NAN, f64::INFINITY, 1e30] {
            assert!(RunTime::from_hours(hours).is_err(), "{hours}");
        }
    }

    proptest! {
        #[test]
        fn a_run_time_reads_back_as_itself(seconds in 1..u32::MAX) {
            let time = RunTime::from_seconds(seconds).unwrap();
            prop_assert_eq!(time.to_string().parse::<RunTime>().unwrap(), time);
        }
    }
}
