//! The submit fence: it makes a late submission of an attempt harmless.
//!
//! Each submission has a fencing token, a number that is stored before the command starts. On the cluster a submission
//! first claims its number, and yields if a later number is claimed. A lookup for a lost submission claims the number
//! too, without submitting. So a delayed submission either began before the first lookup or never begins.

use chrono::TimeDelta;

use crate::clock::Timestamp;

/// The time between two lookups for a lost submission.
pub(crate) const LOOKUP_INTERVAL: TimeDelta = TimeDelta::seconds(10);
/// How long a submission that has begun may still take effect: the remote time limit of the whole command (185 s) and
/// the controller's own message timeout.
pub(crate) const LAST_EFFECT: TimeDelta = TimeDelta::seconds(200);

/// The submissions of one attempt.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct SubmitFence {
    /// The number of the newest; 0 before the first.
    pub newest: u32,
    /// Submissions up to this number are over and had no effect.
    pub cleared: u32,
    /// When a lookup first claimed their numbers, so that none of them can begin any more.
    pub shut_at: Option<Timestamp>,
    /// When a lookup first found no trace, after the last moment at which the newest could have taken effect.
    pub absent_at: Option<Timestamp>,
}

impl SubmitFence {
    /// Records the next submission, before its command starts.
    pub fn begin(&mut self) {
        *self = Self { newest: self.newest.saturating_add(1), cleared: self.cleared, ..Self::default() };
    }

    /// Records that all submissions are over and had no effect.
    pub fn clear(&mut self) {
        *self = Self { newest: self.newest, cleared: self.newest, ..Self::default() };
    }

    /// Whether the outcome of a submission is not known.
    pub fn is_uncertain(&self) -> bool {
        self.newest > self.cleared
    }

    /// Records a lookup that found nothing. Returns whether it proves that no submission had an effect.
    ///
    /// The second such lookup does, at least ten seconds after the first. Both must follow the last moment at which a
    /// submission that had begun could still have taken effect.
    pub(crate) fn are_absent(&mut self, now: Timestamp) -> bool {
        let shut_at = *self.shut_at.get_or_insert(now);
        if now < shut_at + LAST_EFFECT {
            return false;
        }
        now - *self.absent_at.get_or_insert(now) >= LOOKUP_INTERVAL
    }
}

#[cfg(test)]
mod tests {
    use chrono::DateTime;

    use super::*;

    fn at(seconds: i64) -> Timestamp {
        DateTime::from_timestamp(seconds, 0).unwrap()
    }

    #[test]
    fn two_clean_lookups_after_the_last_possible_effect_prove_absence() {
        let mut fence = SubmitFence::default();
        fence.begin();
        assert!(!fence.are_absent(at(0)), "from now on none begins");
        assert!(!fence.are_absent(at(199)), "one may still take effect");
        assert!(!fence.are_absent(at(200)), "the first lookup that counts");
        assert!(!fence.are_absent(at(209)), "too soon after it");
        assert!(fence.are_absent(at(210)));
    }

    #[test]
    fn the_next_submission_needs_its_own_lookups() {
        let mut fence = SubmitFence::default();
        fence.begin();
        assert!(!fence.are_absent(at(0)));
        fence.begin();
        assert!(!fence.are_absent(at(500)));
        assert_eq!((fence.newest, fence.cleared), (2, 0));
    }

    #[test]
    fn a_cleared_submission_needs_no_lookup() {
        let mut fence = SubmitFence::default();
        assert!(!fence.is_uncertain());
        fence.begin();
        assert!(fence.is_uncertain());
        fence.clear();
        assert!(!fence.is_uncertain());
        fence.begin();
        assert_eq!((fence.newest, fence.cleared), (2, 1));
        assert!(fence.is_uncertain());
    }
}
