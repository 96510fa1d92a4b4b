//! Moments for `--begin` and `--deadline`.

use std::{fmt, str::FromStr};

use chrono::{DateTime, NaiveDate, NaiveDateTime, SecondsFormat, TimeDelta, Utc};
use serde_with::{DeserializeFromStr, SerializeDisplay};

use crate::{InvalidName, number::digits};

/// Ten years.
const MOST_SECONDS: u64 = 10 * 366 * 86_400;

/// A moment that a job names.
///
/// sbatch reads dates in the time zone of the login host. A time with an offset, and a time after now, are therefore passed on
/// as the number of seconds that are left.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, SerializeDisplay, DeserializeFromStr)]
pub enum Moment {
    /// A time with an offset: `2026-12-01T08:00:00Z`.
    At(DateTime<Utc>),
    /// So many seconds after the job was created: `now+2hours`.
    After(u64),
    /// A date and a time in the cluster's own time zone: `2026-12-01T08:00:00` or `2026-12-01`.
    Local(NaiveDateTime),
}

impl Moment {
    /// The value for sbatch; `None` if the moment is over. `created` is when the job was created.
    pub fn for_sbatch(&self, created: DateTime<Utc>, now: DateTime<Utc>) -> Option<SbatchTime> {
        let left = match *self {
            Self::At(at) => (at - now).num_seconds(),
            Self::After(seconds) => {
                i64::try_from(seconds).unwrap_or(i64::MAX).saturating_sub((now - created).num_seconds())
            }
            Self::Local(at) => return Some(SbatchTime(at.format("%Y-%m-%dT%H:%M:%S").to_string())),
        };
        (left > 0).then(|| SbatchTime(format!("now+{left}seconds")))
    }

    /// The most time that is left until it, which is not positive if it is over: a time in an unknown zone may be that of the westernmost one. `None`
    /// for a time after the creation of a job.
    pub fn most_left(self, now: DateTime<Utc>) -> Option<TimeDelta> {
        match self {
            Self::At(at) => Some(at - now),
            Self::After(_) => None,
            Self::Local(at) => Some(at.and_utc() + TimeDelta::hours(12) - now),
        }
    }

    /// The time until a later moment, which is negative if that is earlier; `None` if the two cannot be compared.
    pub fn until(self, later: Self) -> Option<TimeDelta> {
        let seconds = |number: u64| TimeDelta::try_seconds(i64::try_from(number).ok()?);
        match (self, later) {
            (Self::At(at), Self::At(later)) => Some(later - at),
            (Self::After(after), Self::After(later)) => Some(seconds(later)? - seconds(after)?),
            (Self::Local(at), Self::Local(later)) => Some(later - at),
            _ => None,
        }
    }
}

impl FromStr for Moment {
    type Err = InvalidName;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let refused = || {
            let allowed = "a time such as 2026-12-01T08:00:00Z, now+2hours, or 2026-12-01T08:00:00 in the cluster's time zone";
            InvalidName::new("time", allowed, text)
        };
        if !text.is_ascii() || text.len() > 40 {
            return Err(refused());
        }
        if let Some(after) = text.strip_prefix("now+") {
            return seconds(after).map(Self::After).ok_or_else(refused);
        }
        if let Ok(at) = DateTime::parse_from_rfc3339(text) {
            return Ok(Self::At(at.to_utc()));
        }
        let formats = ["%Y-%m-%dT%H:%M:%S", "%Y-%m-%dT%H:%M"];
        let time = formats.iter().find_map(|format| NaiveDateTime::parse_from_str(text, format).ok());
        let day = || NaiveDate::parse_from_str(text, "%Y-%m-%d").ok()?.and_hms_opt(0, 0, 0);
        time.or_else(day).map(Self::Local).ok_or_else(refused)
    }
}

/// The seconds of `2hours`, as sbatch(1) spells units.
fn seconds(text: &str) -> Option<u64> {
    let end = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let unit = match &text[end..] {
        "" | "second" | "seconds" => 1,
        "minute" | "minutes" => 60,
        "hour" | "hours" => 3600,
        "day" | "days" => 86_400,
        "week" | "weeks" => 7 * 86_400,
        _ => return None,
    };
    digits::<u64>(&text[..end], 9)?.checked_mul(unit).filter(|seconds| *seconds <= MOST_SECONDS)
}

impl fmt::Display for Moment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::At(at) => f.write_str(&at.to_rfc3339_opts(SecondsFormat::AutoSi, true)),
            Self::After(seconds) => write!(f, "now+{seconds}seconds"),
            Self::Local(at) => write!(f, "{}", at.format("%Y-%m-%dT%H:%M:%S")),
        }
    }
}

/// A moment as sbatch reads it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SbatchTime(String);

impl SbatchTime {
    /// The next second: with a deadline that is over, Slurm refuses the job and says so.
    pub fn next_second() -> Self {
        Self("now+1seconds".to_owned())
    }
}

impl fmt::Display for SbatchTime {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use test_case::test_case;

    use super::*;

    fn at(text: &str) -> DateTime<Utc> {
        text.parse().unwrap()
    }

    #[test_case("2026-12-01T08:00:00+01:00" => Some("now+3600seconds".to_owned()) ; "with an offset")]
    #[test_case("2026-12-01T05:00:00Z" => None ; "over")]
    #[test_case("now+2hours" => Some("now+5400seconds".to_owned()) ; "after the creation")]
    #[test_case("now+30minutes" => None ; "over since the creation")]
    #[test_case("2026-12-01T08:00" => Some("2026-12-01T08:00:00".to_owned()) ; "in the cluster's time zone")]
    #[test_case("2026-12-01" => Some("2026-12-01T00:00:00".to_owned()) ; "a day")]
    fn sbatch_gets_the_seconds_that_are_left(text: &str) -> Option<String> {
        let moment: Moment = text.parse().unwrap();
        assert_eq!(moment.to_string().parse::<Moment>().unwrap(), moment);
        let time = moment.for_sbatch(at("2026-12-01T05:30:00Z"), at("2026-12-01T06:00:00Z"));
        time.map(|time| time.to_string())
    }

    #[test_case("")]
    #[test_case("16:00" ; "another moment for each attempt")]
    #[test_case("tomorrow")]
    #[test_case("now")]
    #[test_case("now+s")]
    #[test_case("now+2s")]
    #[test_case("now+2hourss")]
    #[test_case("now+2years")]
    #[test_case("now+999999999weeks")]
    #[test_case("2026-13-01")]
    #[test_case("2026-12-01T08:00:00\n")]
    fn other_texts_are_refused(text: &str) {
        assert!(text.parse::<Moment>().is_err());
    }
}
