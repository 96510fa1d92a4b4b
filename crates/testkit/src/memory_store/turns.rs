//! Which leases were given and used. This is recorded independently of the checks of leases, so that an audit can compare both.

use domain::JobId;
use uuid::Uuid;

use super::MemoryStore;

/// A right that one worker at a time has.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Right {
    /// To take a step of a job.
    Step(JobId),
    /// To poll the only cluster.
    Poll,
}

/// What happened to a right, in order.
#[derive(Debug, Clone, Copy)]
pub enum Turn {
    /// This lease has it from now on.
    Given(Right, Uuid),
    /// A result under this lease was stored.
    Used(Right, Uuid),
}

impl MemoryStore {
    /// All turns so far.
    pub fn turns(&self) -> Vec<Turn> {
        self.tables().turns.clone()
    }
}
