//! The end of a job and its files with secrets: they go first, as far as that can be waited for.

use chrono::TimeDelta;

use crate::{
    clock::Timestamp,
    job::{
        attempt::Attempt,
        status::{Phase, Status},
        stored::{DesiredState, Job},
    },
};

/// Files that cannot be removed for so long are somebody else's by now, or never will be: the end is more use than the wait.
const GIVE_UP: TimeDelta = TimeDelta::hours(24);

/// Whether files that could not be removed since then are still worth waiting for.
pub fn removal_may_come(since: Option<Timestamp>, now: Timestamp) -> bool {
    since.is_none_or(|since| now - since < GIVE_UP)
}

/// Why files with secrets are still there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PendingCleanup {
    Unanswered,
    /// The cluster answered, and some of them are not surely gone.
    NotRemoved,
}

impl Job {
    /// Whether files with secrets may be on the cluster although Slurm does not have it. They were removed when its last
    /// attempt ended, and when it was paused: before it is submitted again there are none.
    pub fn may_be_staged(&self) -> bool {
        let bare = matches!(
            self.phase,
            Phase::Queued | Phase::ConvertingImage | Phase::RetryWait | Phase::Paused | Phase::Ended
        );
        !bare && self.attempt.as_ref().is_some_and(Attempt::is_open)
    }

    /// The job, which is over, as it is until its files are gone: nobody looks at it again after its end. Nothing when
    /// `before` has waited for that too long.
    pub fn not_ended(&self, before: &Self, kept: PendingCleanup, now: Timestamp) -> Option<Self> {
        if !removal_may_come(before.finishing_since, now) {
            return None;
        }
        let mut job = self.clone();
        let (status, what) = match job.desired {
            DesiredState::Cancel | DesiredState::Delete => (Status::Canceling, "Canceling:"),
            DesiredState::Pause => (Status::Pausing, "Pausing:"),
            DesiredState::Run => (Status::Pending, &*self.message),
        };
        let why = match kept {
            PendingCleanup::Unanswered => "which does not answer",
            PendingCleanup::NotRemoved => "which could not remove them",
        };
        let its = if job.desired == DesiredState::Run { "Its" } else { "its" };
        job.message = format!("{what} {its} files with secrets are still on the cluster, {why}.");
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

#[cfg(test)]
mod tests {
    use chrono::DateTime;
    use test_case::test_case;

    use super::*;
    use crate::fixtures::{sent_job, submitted_job};

    const T0: Timestamp = DateTime::UNIX_EPOCH;

    #[test_case(Phase::Queued => false; "resumed after a pause that removed them")]
    #[test_case(Phase::Paused => false; "paused before it reached Slurm")]
    #[test_case(Phase::Submitting => true; "refused by Slurm, to be sent again")]
    #[test_case(Phase::SubmitUncertain => true; "its answer lost")]
    fn an_attempt_that_is_open_may_have_staged_its_files(phase: Phase) -> bool {
        Job { phase, ..sent_job() }.may_be_staged()
    }

    #[test]
    fn an_attempt_that_is_over_has_none_left() {
        let over = Job { desired: DesiredState::Cancel, ..submitted_job() }.canceled_locally(T0);
        assert!(!Job { phase: Phase::RetryWait, ..over.clone() }.may_be_staged());
        assert!(!Job { phase: Phase::Submitting, ..over }.may_be_staged());
    }

    #[test_case(
        DesiredState::Cancel,
        "Canceling: its files with secrets are still on the cluster, which does not answer."
    )]
    #[test_case(
        DesiredState::Pause,
        "Pausing: its files with secrets are still on the cluster, which does not answer."
    )]
    #[test_case(
        DesiredState::Run,
        "No. Its files with secrets are still on the cluster, which does not answer."
    )]
    fn a_job_says_what_its_end_waits_for(desired: DesiredState, says: &str) {
        let before = Job { desired, ..sent_job() };
        let ended = Job { message: "No.".to_owned(), ..before.canceled_locally(T0) };
        let waits = ended.not_ended(&before, PendingCleanup::Unanswered, T0).unwrap();
        assert_eq!((waits.message.as_str(), waits.phase), (says, Phase::Submitting));
        assert!(waits.may_be_staged() && waits.finished_at.is_none());
    }

    #[test]
    fn the_wait_is_counted_from_its_beginning_and_ends_after_a_day() {
        let mut before = Job { desired: DesiredState::Cancel, ..sent_job() };
        for hours in [0, 12, 23] {
            let ended = before.canceled_locally(T0);
            before =
                ended.not_ended(&before, PendingCleanup::NotRemoved, T0 + TimeDelta::hours(hours)).unwrap();
        }
        let ended = before.canceled_locally(T0);
        assert!(ended.not_ended(&before, PendingCleanup::NotRemoved, T0 + TimeDelta::hours(24)).is_none());
    }
}
