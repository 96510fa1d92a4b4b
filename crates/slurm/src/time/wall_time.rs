//! Slurm's time limits.

use std::{fmt, str::FromStr};

use serde_with::{DeserializeFromStr, SerializeDisplay};

use crate::{
    InvalidName,
    number::{digits, round_up},
};

const KIND: &str = "time limit";
const MINUTES_PER_DAY: u32 = 24 * 60;
/// `slurm.h` uses the last two values of a `u32` for `NO_VAL` and `INFINITE`.
const MAX_MINUTES: u32 = u32::MAX - 2;

/// A time limit: whole minutes, at least one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, SerializeDisplay, DeserializeFromStr)]
pub struct WallTime(u32);

impl WallTime {
    /// A number of minutes; `None` for zero ("no limit" for sbatch) and for Slurm's reserved values.
    pub const fn from_minutes(minutes: u32) -> Option<Self> {
        if minutes == 0 || minutes > MAX_MINUTES { None } else { Some(Self(minutes)) }
    }

    /// A number of hours, rounded up to a whole minute.
    ///
    /// A float cannot represent 3.8 hours as exactly 228 minutes, so a deviation of less than a millionth of a minute
    /// does not count.
    pub fn from_hours(hours: f64) -> Result<Self, InvalidName> {
        round_up(hours * 60.0, 1e-6, MAX_MINUTES)
            .map(Self)
            .ok_or_else(|| InvalidName::new(KIND, "a number of hours above zero", &hours.to_string()))
    }

    /// The limit in minutes.
    pub const fn minutes(self) -> u32 {
        self.0
    }

    /// The limit in seconds.
    pub fn seconds(self) -> u64 {
        u64::from(self.0) * 60
    }
}

impl fmt::Display for WallTime {
    /// `HH:MM:00`, with days as `D-HH:MM:00`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (days, rest) = (self.0 / MINUTES_PER_DAY, self.0 % MINUTES_PER_DAY);
        if days > 0 {
            write!(f, "{days}-")?;
        }
        write!(f, "{:02}:{:02}:00", rest / 60, rest % 60)
    }
}

impl FromStr for WallTime {
    type Err = InvalidName;

    /// The formats of sbatch(1) `--time`: `M`, `M:S`, `H:M:S`, `D-H`, `D-H:M`, `D-H:M:S`. Seconds are rounded up to a
    /// minute, as in sbatch.
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        seconds_of(text)
            .and_then(|seconds| u32::try_from(seconds.div_ceil(60)).ok())
            .and_then(Self::from_minutes)
            .ok_or_else(|| InvalidName::new(KIND, "M, M:S, H:M:S, D-H, D-H:M or D-H:M:S, above zero", text))
    }
}

pub(crate) fn seconds_of(text: &str) -> Option<u64> {
    let (days, clock) = match text.split_once('-') {
        Some((days, clock)) => (Some(number(days)?), clock),
        None => (None, text),
    };
    let fields = clock.split(':').map(number).collect::<Option<Vec<u64>>>()?;
    let (hours, minutes, seconds) = match (days.is_some(), fields.as_slice()) {
        (true, [hours]) => (*hours, 0, 0),
        (true, [hours, minutes]) => (*hours, *minutes, 0),
        (_, [hours, minutes, seconds]) => (*hours, *minutes, *seconds),
        (false, [minutes]) => (0, *minutes, 0),
        (false, [minutes, seconds]) => (0, *minutes, *seconds),
        (_, _) => return None,
    };
    Some(days.unwrap_or(0) * 86_400 + hours * 3_600 + minutes * 60 + seconds)
}

/// At most ten digits, so that the sum cannot overflow a `u64`.
fn number(text: &str) -> Option<u64> {
    digits(text, 10)
}

/// The time limit of a partition or a job.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, SerializeDisplay, DeserializeFromStr)]
pub enum TimeLimit {
    /// Limited to this time.
    Limited(WallTime),
    /// No limit: squeue and scontrol print `UNLIMITED`, sinfo prints `infinite`.
    Unlimited,
}

impl fmt::Display for TimeLimit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Limited(time) => fmt::Display::fmt(time, f),
            Self::Unlimited => f.write_str("UNLIMITED"),
        }
    }
}

impl FromStr for TimeLimit {
    type Err = InvalidName;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        if text.eq_ignore_ascii_case("unlimited") || text.eq_ignore_ascii_case("infinite") {
            Ok(Self::Unlimited)
        } else {
            text.parse().map(Self::Limited)
        }
    }
}

#[cfg(test)]
#[path = "wall_time_tests.rs"]
mod tests;
