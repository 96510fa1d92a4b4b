//! Who was given the right to do what, and who has made use of one: kept without a look at what a lease is checked by, so that
//! an audit can hold the one against the other.

use domain::JobId;
use uuid::Uuid;

use super::MemoryStore;

/// What only one worker at a time has the right to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Right {
    /// To take a step of a job.
    Step(JobId),
    /// To take a step of the conversion of an image.
    Conversion(Uuid),
    /// To poll the one cluster that there is.
    Poll,
}

/// What happened to a right, in the order in which it did.
#[derive(Debug, Clone, Copy)]
pub enum Turn {
    /// It is this lease's from now on.
    Given(Right, Uuid),
    /// What was done under this lease was stored.
    Used(Right, Uuid),
}

impl MemoryStore {
    /// All turns so far.
    pub fn turns(&self) -> Vec<Turn> {
        self.tables().turns.clone()
    }
}
