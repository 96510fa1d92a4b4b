//! How long a job that waits is no news, so that a poll of ten thousand such jobs need not read them.

use slurm::QueueRow;

use super::{Observation, at, is_waiting};
use crate::{
    clock::Timestamp,
    job::{status::Phase, stored::Job},
    run::pending::estimate_holds_until,
};

impl<'a> Observation<'a> {
    /// The queue's row, if nothing else was seen of the job: what was seen next to it has to be looked at each time.
    pub fn queue_alone(&self) -> Option<&'a QueueRow> {
        let beside = self.accounting.is_some()
            || self.markers.is_some()
            || !self.status.is_empty()
            || self.signs_of_life.is_some();
        self.queue.filter(|_| !beside)
    }
}

/// Until when the queue's row alone, of which [`observe`](super::observe) has just said that it is no news of the job, will be
/// none for the same version of the job; nothing if that is to be asked of `observe` itself.
pub fn quiet_until(job: &Job, row: &QueueRow, now: Timestamp) -> Option<Timestamp> {
    let attempt = job.attempt.as_ref()?;
    // Nodes that a job is kept away from are allowed_again with time.
    let ours = row.name == attempt.token.as_str();
    if !ours || job.phase != Phase::InQueue || !is_waiting(&row.state) || !attempt.excluded.is_empty() {
        return None;
    }
    estimate_holds_until(attempt.estimated_start, at(row.start), now)
}
