//! How fast the files of an ended job are read: a job decides how much there is, and may still write.

use chrono::TimeDelta;
use remote::{STATUS_BACKLOG, STATUS_BYTES};

use super::Findings;
use crate::{clock::Timestamp, job::stored::Job};

/// How long the service waits for files that are unreadable, or read far behind, before the verdict.
pub(super) const CATCH_UP: TimeDelta = TimeDelta::minutes(10);
/// After this long, no more than the ends of status files are read: the final status is there.
const WHOLE_FILES: TimeDelta = TimeDelta::minutes(5);
/// Within this time a shared file system shows a file that the job wrote, or its last part.
const LATE_FILES: TimeDelta = TimeDelta::seconds(30);
const LEAST_PAUSE: TimeDelta = TimeDelta::seconds(5);
/// While each round reads the next part of a file.
const LEAST_PAUSE_OF_A_READER: TimeDelta = TimeDelta::seconds(1);
const LONGEST_PAUSE: TimeDelta = TimeDelta::minutes(10);

/// How many unread bytes of a status file are read before only its end is. `since`: when the job ended, or the task of an array.
pub fn status_backlog(since: Option<Timestamp>, now: Timestamp) -> u64 {
    if passed(since, now) < WHOLE_FILES { STATUS_BACKLOG } else { STATUS_BYTES as u64 }
}

/// When a job that waits until `until` is concluded again: evidence may come at any moment.
///
/// The pause grows with the time since the job's end, so there are few rounds, however long the job gives reasons for
/// another one.
pub fn next_conclusion(job: &Job, until: Timestamp, now: Timestamp) -> Timestamp {
    until.min(now + pause(job, now))
}

/// Whether a status file has a next part: more bytes than one reply holds.
pub(super) fn has_next_part(found: &Findings<'_>) -> bool {
    found.status.iter().any(|chunk| !chunk.complete && !chunk.bytes.is_empty())
}

/// Until when next parts are read before the verdict.
pub(super) fn reads_until(job: &Job, now: Timestamp) -> Timestamp {
    job.finishing_since.map_or(now, |since| since + CATCH_UP)
}

/// Until when the files of a successful job's results are waited for.
pub(super) fn files_until(job: &Job, now: Timestamp) -> Timestamp {
    job.finishing_since.map_or(now, |since| since + LATE_FILES)
}

/// When the next part is read. It is there already, so the pause grows more slowly than that of a job that waits for evidence.
pub(super) fn next_part(job: &Job, now: Timestamp) -> Timestamp {
    now + (finishing_for(job, now) / 16).max(LEAST_PAUSE_OF_A_READER)
}

fn pause(job: &Job, now: Timestamp) -> TimeDelta {
    (finishing_for(job, now) / 8).clamp(LEAST_PAUSE, LONGEST_PAUSE)
}

fn finishing_for(job: &Job, now: Timestamp) -> TimeDelta {
    passed(job.finishing_since, now)
}

fn passed(since: Option<Timestamp>, now: Timestamp) -> TimeDelta {
    since.map_or(TimeDelta::zero(), |since| now - since)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn after_five_minutes_only_the_ends_of_status_files_are_read() {
        let since = Timestamp::UNIX_EPOCH;
        let after = |seconds| status_backlog(Some(since), since + TimeDelta::seconds(seconds));
        assert_eq!([0, 299].map(after), [STATUS_BACKLOG; 2]);
        assert_eq!([300, 3600].map(after), [STATUS_BYTES as u64; 2]);
        assert_eq!(status_backlog(None, since), STATUS_BACKLOG, "it has not ended");
    }
}
