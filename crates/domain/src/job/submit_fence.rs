//! How often the submission of an attempt was sent, and what is known of that.
//!
//! Each send has a number, which is stored before anything is sent. On the cluster a send begins by claiming its number,
//! and yields to whoever has claimed a later one; a look for a lost send claims its number for nobody. So a send that is
//! held up, for however long, either has begun before the first look or never begins.

use chrono::TimeDelta;

use crate::clock::Timestamp;

/// The time between two looks for a lost submission.
pub(crate) const LOOK_AGAIN: TimeDelta = TimeDelta::seconds(10);
/// How long a send that has begun may still take effect: the far side's bound on the whole command (185 s) and the
/// controller's own message time-out.
pub(crate) const LAST_EFFECT: TimeDelta = TimeDelta::seconds(200);

/// The sends of one attempt.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct SubmitFence {
    /// The number of the newest; 0 before the first.
    pub newest: u32,
    /// Those up to this number are over and had no effect.
    pub cleared: u32,
    /// When a look first saw to it that none of them begins any more.
    pub shut_at: Option<Timestamp>,
    /// When a clean look first found no trace, after the last moment at which the newest could have taken effect.
    pub absent_at: Option<Timestamp>,
}

impl SubmitFence {
    /// The next one is about to be sent.
    pub fn begin(&mut self) {
        *self = Self { newest: self.newest.saturating_add(1), cleared: self.cleared, ..Self::default() };
    }

    /// All of them are over and had no effect.
    pub fn clear(&mut self) {
        *self = Self { newest: self.newest, cleared: self.newest, ..Self::default() };
    }

    /// Whether there is one of which nobody knows what became of it.
    pub fn is_unanswered(&self) -> bool {
        self.newest > self.cleared
    }

    /// A look has found nothing, and none of them begins any more: whether that proves that none has had an effect.
    ///
    /// It does at the second such look, at least ten seconds after the first, both after the last moment at which one that
    /// had begun could still have taken effect.
    pub(crate) fn are_absent(&mut self, now: Timestamp) -> bool {
        let shut_at = *self.shut_at.get_or_insert(now);
        if now < shut_at + LAST_EFFECT {
            return false;
        }
        now - *self.absent_at.get_or_insert(now) >= LOOK_AGAIN
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
    fn two_clean_looks_after_the_last_possible_effect_prove_absence() {
        let mut fence = SubmitFence::default();
        fence.begin();
        assert!(!fence.are_absent(at(0)), "from now on none begins");
        assert!(!fence.are_absent(at(199)), "one may still take effect");
        assert!(!fence.are_absent(at(200)), "the first look that counts");
        assert!(!fence.are_absent(at(209)), "too soon after it");
        assert!(fence.are_absent(at(210)));
    }

    #[test]
    fn the_next_send_has_to_be_looked_for_anew() {
        let mut fence = SubmitFence::default();
        fence.begin();
        assert!(!fence.are_absent(at(0)));
        fence.begin();
        assert!(!fence.are_absent(at(500)));
        assert_eq!((fence.newest, fence.cleared), (2, 0));
    }

    #[test]
    fn what_is_cleared_needs_no_look() {
        let mut fence = SubmitFence::default();
        assert!(!fence.is_unanswered());
        fence.begin();
        assert!(fence.is_unanswered());
        fence.clear();
        assert!(!fence.is_unanswered());
        fence.begin();
        assert_eq!((fence.newest, fence.cleared), (2, 1));
        assert!(fence.is_unanswered());
    }
}
