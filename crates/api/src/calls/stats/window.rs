//! The window of figures, and its buckets.

use chrono::{DateTime, TimeDelta};
use domain::Timestamp;
use persistence::StatsBuckets;
use serde::Serialize;
use strum::EnumString;
use utoipa::ToSchema;

/// The window if only its end is known.
const USUAL: TimeDelta = TimeDelta::days(7);
/// The longest window, in days.
const LONGEST: i64 = 400;
/// The most buckets of an answer.
const MOST_BUCKETS: usize = 1000;

/// The length of a bucket, in UTC.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, EnumString, ToSchema)]
#[serde(rename_all = "lowercase")]
#[strum(serialize_all = "lowercase")]
pub(crate) enum Bucket {
    /// From minute 0.
    Hour,
    /// From midnight.
    Day,
    /// From Monday.
    Week,
}

impl Bucket {
    const fn seconds(self) -> u32 {
        match self {
            Self::Hour => 3600,
            Self::Day => 86_400,
            Self::Week => 604_800,
        }
    }

    /// The beginning of the bucket with this moment.
    fn begin(self, at: Timestamp) -> Timestamp {
        at - TimeDelta::seconds((at - earliest()).num_seconds().rem_euclid(i64::from(self.seconds())))
            - TimeDelta::nanoseconds(i64::from(at.timestamp_subsec_nanos()))
    }
}

/// A Monday, from which all buckets are counted: the first day that RFC 3339 and Postgres both write without a sign.
fn earliest() -> Timestamp {
    DateTime::from_timestamp(-62_135_596_800, 0).unwrap_or_default()
}

/// The last second that RFC 3339 writes without a sign.
fn latest() -> Timestamp {
    DateTime::from_timestamp(253_402_300_799, 0).unwrap_or_default()
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Window {
    pub(super) since: Timestamp,
    pub(super) until: Timestamp,
    pub(super) buckets: Option<StatsBuckets>,
}

impl Window {
    /// With the defaults for what is not given.
    ///
    /// # Errors
    ///
    /// The parameter that contradicts another, and why: the window ends before it begins, is too long, or has too many buckets.
    pub(super) fn new(
        since: Option<Timestamp>,
        until: Option<Timestamp>,
        bucket: Option<Bucket>,
        now: Timestamp,
    ) -> Result<Self, (&'static str, String)> {
        let within = |at: Timestamp| at.clamp(earliest(), latest());
        let until = within(until.unwrap_or(now));
        let since = within(since.unwrap_or(until - USUAL));
        if since >= until {
            return Err(("since", "must be before `until`, which is now if it is not given".to_owned()));
        }
        if until - since > TimeDelta::days(LONGEST) {
            return Err(("since", format!("must be at most {LONGEST} days before `until`")));
        }
        let buckets =
            bucket.map(|bucket| StatsBuckets { first: bucket.begin(since), seconds: bucket.seconds() });
        let window = Self { since, until, buckets };
        let count = window.starts().len();
        if count > MOST_BUCKETS {
            let detail = format!(
                "splits the window into {count} buckets, and {MOST_BUCKETS} are the most: ask for longer buckets or a shorter window"
            );
            return Err(("bucket", detail));
        }
        Ok(window)
    }

    /// The beginnings of the buckets; none if none were asked for.
    pub(super) fn starts(&self) -> Vec<Timestamp> {
        let Some(StatsBuckets { first, seconds }) = self.buckets else { return Vec::new() };
        let step = TimeDelta::seconds(seconds.into());
        std::iter::successors(Some(first), |at| at.checked_add_signed(step))
            .take_while(|at| *at < self.until)
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use chrono::{Datelike, Weekday};
    use proptest::prelude::*;
    use test_case::test_case;

    use super::*;

    fn at(text: &str) -> Timestamp {
        text.parse().unwrap()
    }

    #[test_case(Bucket::Hour, "2026-11-28T10:59:59.999999999Z" => "2026-11-28T10:00:00+00:00")]
    #[test_case(Bucket::Hour, "2026-11-28T10:00:00Z" => "2026-11-28T10:00:00+00:00")]
    #[test_case(Bucket::Day, "2026-11-28T00:00:00.5Z" => "2026-11-28T00:00:00+00:00")]
    #[test_case(Bucket::Week, "2026-11-28T10:59:59Z" => "2026-11-23T00:00:00+00:00"; "a Saturday")]
    #[test_case(Bucket::Week, "2026-11-23T00:00:00Z" => "2026-11-23T00:00:00+00:00"; "a Monday")]
    #[test_case(Bucket::Week, "1969-12-31T23:00:00Z" => "1969-12-29T00:00:00+00:00"; "before 1970")]
    fn a_bucket_begins_at_a_full_hour_day_or_monday(bucket: Bucket, moment: &str) -> String {
        bucket.begin(at(moment)).to_rfc3339()
    }

    #[test]
    fn without_times_the_window_is_the_last_7_days() {
        let now = at("2026-11-28T10:30:00Z");
        let window = Window::new(None, None, Some(Bucket::Day), now).unwrap();
        assert_eq!((window.since, window.until), (at("2026-11-21T10:30:00Z"), now));
        assert_eq!(window.starts().len(), 8, "the first and the last one are parts of a day");
        let window = Window::new(Some(at("2026-11-28T09:00:00Z")), None, Some(Bucket::Hour), now).unwrap();
        assert_eq!(window.starts(), [at("2026-11-28T09:00:00Z"), at("2026-11-28T10:00:00Z")]);
        let whole = Some(at("2026-11-28T10:00:00Z"));
        let window = Window::new(Some(at("2026-11-28T09:00:00Z")), whole, Some(Bucket::Hour), now).unwrap();
        assert_eq!(window.starts().len(), 1, "the end is left out");
    }

    #[test_case("2026-11-28T10:00:00Z", "2026-11-28T10:00:00Z", None => Some("since"); "nothing between")]
    #[test_case("2025-10-24T10:00:00Z", "2026-11-28T10:00:00Z", None => None; "400 days")]
    #[test_case("2025-10-24T09:59:59Z", "2026-11-28T10:00:00Z", None => Some("since"); "more than 400 days")]
    #[test_case("2026-10-01T00:00:00Z", "2026-11-11T16:00:00Z", Some(Bucket::Hour) => None; "1000 hours")]
    #[test_case("2026-10-01T00:00:00Z", "2026-11-11T16:00:01Z", Some(Bucket::Hour) => Some("bucket"); "1001 hours")]
    #[test_case("2025-10-24T10:00:00Z", "2026-11-28T10:00:00Z", Some(Bucket::Day) => None; "400 days one by one")]
    fn what_is_wrong_with_a_window_is_named(
        since: &str,
        until: &str,
        bucket: Option<Bucket>,
    ) -> Option<&'static str> {
        let window = Window::new(Some(at(since)), Some(at(until)), bucket, at("2026-11-28T10:00:00Z"));
        window.err().map(|(parameter, _)| parameter)
    }

    #[test]
    fn buckets_are_counted_from_a_monday() {
        assert_eq!(earliest().weekday(), Weekday::Mon);
        assert_eq!(earliest(), at("0001-01-01T00:00:00Z"));
        assert_eq!(latest(), at("9999-12-31T23:59:59Z"));
    }

    proptest! {
        #[test]
        fn every_moment_of_a_window_is_in_one_of_its_buckets(
            unit in prop_oneof![Just(1_i64), Just(1800)], since in -34_555_000_i64..140_833_000, length in 1..19_200_i64,
            bucket in 0..3_usize,
        ) {
            // Of half hours, some are boundaries of buckets.
            let since = DateTime::from_timestamp(since * 1800 + i64::from(unit == 1), 0).unwrap();
            let until = since + TimeDelta::seconds(length * unit);
            let bucket = [Bucket::Hour, Bucket::Day, Bucket::Week][bucket];
            if let Ok(window) = Window::new(Some(since), Some(until), Some(bucket), since) {
                let (starts, step) = (window.starts(), TimeDelta::seconds(bucket.seconds().into()));
                let (first, last) = (*starts.first().unwrap(), *starts.last().unwrap());
                prop_assert!(first <= window.since && window.since < first + step);
                prop_assert!(last < window.until && window.until <= last + step);
                prop_assert!(starts.len() <= MOST_BUCKETS);
                prop_assert!(window.since.to_rfc3339().starts_with(|c: char| c.is_ascii_digit()));
            }
        }
    }
}
