//! Which of two lines came first.

use std::cmp::Ordering;

use super::judge::Judged;

/// Within a log the place decides. Between logs the time does, where both show one; else the order of the logs.
pub(super) fn compare(a: &Judged<'_>, b: &Judged<'_>) -> Ordering {
    if a.log == b.log {
        return a.found.offset.cmp(&b.found.offset);
    }
    let by_time = a.time.zip(b.time).map_or(Ordering::Equal, |(a, b)| a.total_cmp(&b));
    by_time.then(a.log.cmp(&b.log))
}
