//! The removal of a job's files: those with secrets before the job ends, the rest after its deletion.

use chrono::TimeDelta;

use crate::{
    clock::Timestamp,
    job::{
        attempt::Attempt,
        status::{Phase, Status},
        stored::{DesiredState, Job},
    },
};

/// After this long the job ends even if its files with secrets could not be removed.
const GIVE_UP: TimeDelta = TimeDelta::hours(24);

/// Whether the cleanup that has been pending since then is still retried.
pub fn cleanup_is_retried(since: Option<Timestamp>, now: Timestamp) -> bool {
    since.is_none_or(|since| now - since < GIVE_UP)
}

/// Why a cleanup is pending.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PendingCleanup {
    Unanswered,
    /// The cluster answered, and could not confirm the removal of every file.
    NotRemoved,
}

impl Job {
    /// Whether files with secrets may be on the cluster although Slurm does not have the job.
    ///
    /// The end of an attempt and a pause remove them, so there are none until the next submission, unless an attempt was queued ahead.
    pub fn may_be_staged(&self) -> bool {
        let bare = matches!(
            self.phase,
            Phase::Waiting
                | Phase::Queued
                | Phase::ConvertingImage
                | Phase::RetryWait
                | Phase::Paused
                | Phase::Ended
        );
        let has_ahead = self.number_ahead().is_some() && !self.closes_ahead();
        has_ahead || !bare && self.attempt.as_ref().is_some_and(Attempt::is_open)
    }

    /// This ended job, kept open until its files are removed. `None` when `before` has waited too long for that.
    pub fn with_pending_cleanup(
        &self,
        before: &Self,
        cleanup: PendingCleanup,
        now: Timestamp,
    ) -> Option<Self> {
        if !cleanup_is_retried(before.finishing_since, now) {
            return None;
        }
        let mut job = self.clone();
        let (status, prefix) = match job.desired {
            DesiredState::Cancel | DesiredState::Delete => (Status::Canceling, "Canceling."),
            DesiredState::Pause => (Status::Pausing, "Pausing."),
            DesiredState::Run => (Status::Pending, &*self.message),
        };
        let why = match cleanup {
            PendingCleanup::Unanswered => "the cluster does not answer",
            PendingCleanup::NotRemoved => "the cluster could not remove them",
        };
        job.message = format!("{prefix} Removing its files with secrets failed ({why}); retrying.");
        job.status = status;
        job.phase = Phase::Submitting;
        job.finished_at = None;
        job.finishing_since = before.finishing_since.or(Some(now));
        if let Some(attempt) = &mut job.attempt {
            attempt.fence.clear();
            attempt.verdict = None;
        }
        Some(job)
    }
}

/// With the waits between them, a day.
const MOST_PURGES: u32 = 30;
const FIRST_WAIT: TimeDelta = TimeDelta::minutes(1);
const LONGEST_WAIT: TimeDelta = TimeDelta::hours(1);

/// The wait before the next try to remove a deleted job's files; `None` after the last try.
///
/// It counts tries and not hours, so that a service that was down for a day still tries.
pub fn next_purge_wait(failed_before: u32) -> Option<TimeDelta> {
    let again = failed_before + 1 < MOST_PURGES;
    again.then(|| (FIRST_WAIT * (1 << failed_before.min(6))).min(LONGEST_WAIT))
}

#[cfg(test)]
mod tests {
    use chrono::DateTime;
    use test_case::test_case;

    use super::*;
    use crate::fixtures::{submitted_job, submitting_job};

    const T0: Timestamp = DateTime::UNIX_EPOCH;

    #[test_case(Phase::Queued => false; "resumed after a pause that removed them")]
    #[test_case(Phase::Paused => false; "paused before it reached Slurm")]
    #[test_case(Phase::Submitting => true; "refused by Slurm, to be submitted again")]
    #[test_case(Phase::SubmitUncertain => true; "its reply lost")]
    fn an_attempt_that_is_open_may_have_staged_its_files(phase: Phase) -> bool {
        Job { phase, ..submitting_job() }.may_be_staged()
    }

    #[test]
    fn an_attempt_that_is_over_has_none_left() {
        let over = Job { desired: DesiredState::Cancel, ..submitted_job() }.canceled_locally(T0);
        assert!(!Job { phase: Phase::RetryWait, ..over.clone() }.may_be_staged());
        assert!(!Job { phase: Phase::Submitting, ..over }.may_be_staged());
    }

    #[test_case(
        DesiredState::Cancel,
        "Canceling. Removing its files with secrets failed (the cluster does not answer); retrying."
    )]
    #[test_case(
        DesiredState::Pause,
        "Pausing. Removing its files with secrets failed (the cluster does not answer); retrying."
    )]
    #[test_case(
        DesiredState::Run,
        "No. Removing its files with secrets failed (the cluster does not answer); retrying."
    )]
    fn the_message_names_the_pending_cleanup(desired: DesiredState, says: &str) {
        let before = Job { desired, ..submitting_job() };
        let ended = Job { message: "No.".to_owned(), ..before.canceled_locally(T0) };
        let waits = ended.with_pending_cleanup(&before, PendingCleanup::Unanswered, T0).unwrap();
        assert_eq!((waits.message.as_str(), waits.phase), (says, Phase::Submitting));
        assert!(waits.may_be_staged() && waits.finished_at.is_none());
    }

    #[test]
    fn the_wait_is_counted_from_its_beginning_and_ends_after_a_day() {
        let mut before = Job { desired: DesiredState::Cancel, ..submitting_job() };
        for hours in [0, 12, 23] {
            let ended = before.canceled_locally(T0);
            before = ended
                .with_pending_cleanup(&before, PendingCleanup::NotRemoved, T0 + TimeDelta::hours(hours))
                .unwrap();
        }
        let ended = before.canceled_locally(T0);
        assert!(
            ended
                .with_pending_cleanup(&before, PendingCleanup::NotRemoved, T0 + TimeDelta::hours(24))
                .is_none()
        );
    }

    #[test]
    fn the_waits_grow_to_an_hour_and_end_after_a_day() {
        let waits: Vec<_> = (0..).map_while(next_purge_wait).collect();
        let minutes: Vec<_> = waits.iter().map(TimeDelta::num_minutes).take(8).collect();
        assert_eq!(minutes, [1, 2, 4, 8, 16, 32, 60, 60]);
        assert_eq!(waits.iter().sum::<TimeDelta>().num_hours(), 24);
    }

    #[test]
    fn an_abandoned_purge_is_never_retried() {
        assert_eq!((next_purge_wait(29), next_purge_wait(u32::MAX - 1)), (None, None));
    }
}
