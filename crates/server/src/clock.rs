//! Where the present moment and new identities come from: made here once, passed in everywhere else.

use chrono::Utc;
use domain::{Clock, Ids, Timestamp};
use uuid::Uuid;

/// The machine's clock.
#[derive(Debug, Clone, Copy)]
pub(crate) struct SystemClock;

impl Clock for SystemClock {
    #[expect(clippy::disallowed_methods, reason = "this is the clock that everybody else is told to ask")]
    fn now(&self) -> Timestamp {
        Utc::now()
    }
}

/// Identities from the machine's randomness.
#[derive(Debug, Clone, Copy)]
pub(crate) struct RandomIds;

impl Ids for RandomIds {
    #[expect(clippy::disallowed_methods, reason = "this is the source that everybody else is told to ask")]
    fn job(&self) -> Uuid {
        Uuid::now_v7()
    }

    #[expect(clippy::disallowed_methods, reason = "this is the source that everybody else is told to ask")]
    fn lease(&self) -> Uuid {
        Uuid::new_v4()
    }
}
