//! Unchanged pending jobs: the worker caches their last squeue row and the job's version, so that polls skip them.

use std::{
    collections::{HashMap, HashSet, hash_map::RandomState},
    hash::BuildHasher as _,
    mem,
};

use chrono::TimeDelta;
use domain::{ActiveJob, Job, JobId, Timestamp, unchanged_until};

use crate::poll::tick::poll_results::PollResults;

/// How long a job can be skipped, up to twice as long. It differs between jobs, so that not all are read at once.
const BELIEVED: TimeDelta = TimeDelta::minutes(10);

/// The unchanged jobs of a cluster.
#[derive(Debug, Default)]
pub(crate) struct Quiet {
    known: HashMap<JobId, Known>,
    hasher: RandomState,
}

/// A job's version and the hash of its squeue row, the only source about it.
#[derive(Debug)]
struct Known {
    version: i64,
    row: u64,
    until: Timestamp,
}

impl Quiet {
    /// The active jobs that may have changed. Entries of other jobs are dropped.
    pub(super) fn may_have_news<'a>(
        &mut self,
        active: &'a [ActiveJob],
        results: &PollResults,
        now: Timestamp,
    ) -> Vec<&'a ActiveJob> {
        let mut before = mem::take(&mut self.known);
        let is_unknown = |job: &&ActiveJob| {
            let known = before.remove(&job.id).filter(|known| {
                let row = results.queue_alone(&job.attempt).map(|row| self.hasher.hash_one(row));
                known.version == job.version && known.until > now && row == Some(known.row)
            });
            known.is_none_or(|known| {
                self.known.insert(job.id, known);
                false
            })
        };
        active.iter().filter(is_unknown).collect()
    }

    /// Keeps the jobs that did not change.
    pub(super) fn note(
        &mut self,
        jobs: &[Job],
        changed: &HashSet<JobId>,
        results: &PollResults,
        now: Timestamp,
    ) {
        for job in jobs.iter().filter(|job| !changed.contains(&job.id)) {
            let row = job.attempt.as_ref().and_then(|attempt| results.queue_alone(&attempt.into()));
            let Some((row, until)) = row.and_then(|row| Some((row, unchanged_until(job, row, now)?))) else {
                continue;
            };
            let until = until.min(now + skipped_for(job.id));
            let known = Known { version: job.version, row: self.hasher.hash_one(row), until };
            self.known.insert(job.id, known);
        }
    }
}

/// How long a job can be skipped: always the same for one job.
fn skipped_for(id: JobId) -> TimeDelta {
    let more = id.get().as_u128() % u128::from(BELIEVED.num_seconds().unsigned_abs());
    BELIEVED + TimeDelta::seconds(i64::try_from(more).unwrap_or_default())
}
