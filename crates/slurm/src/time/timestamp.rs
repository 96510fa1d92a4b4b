//! Points in time, as squeue and sacct print them.

use chrono::{DateTime, NaiveDateTime, Utc};

/// Parses a time to seconds since 1970. `N/A`, `Unknown` and anything else that is not a time is `None`.
///
/// The commands request seconds since 1970 (`SLURM_TIME_FORMAT=%s`) and UTC, so that the output of a Slurm that ignores
/// the variable is understood too: `2026-11-20T23:07:52`.
pub(crate) fn parse(text: &str) -> Option<i64> {
    let iso = || NaiveDateTime::parse_from_str(text, "%Y-%m-%dT%H:%M:%S").ok();
    text.parse().ok().or_else(|| Some(iso()?.and_utc().timestamp()).filter(|seconds| *seconds >= 0))
}

/// The moment of a time that the cluster reported. A time before 1970 or after the year 3000 comes from a broken clock,
/// and is `None`.
pub fn timestamp(unix: Option<i64>) -> Option<DateTime<Utc>> {
    const YEAR_3000: i64 = 32_503_680_000;
    unix.filter(|seconds| (1..YEAR_3000).contains(seconds))
        .and_then(|seconds| DateTime::from_timestamp(seconds, 0))
}
