//! The jobs of which the polls before know that a poll has no news, so that they are not read at all.

use std::{
    collections::{HashMap, HashSet, hash_map::RandomState},
    hash::BuildHasher as _,
    mem,
};

use chrono::TimeDelta;
use domain::{ActiveJob, Job, JobId, Timestamp, unchanged_until};

use crate::poll::tick::sight::Sight;

/// Each is looked at again after so long all the same, and after up to twice as long, so that not all are at once.
const BELIEVED: TimeDelta = TimeDelta::minutes(10);

/// What was no news of the jobs of a cluster.
#[derive(Debug, Default)]
pub(crate) struct Quiet {
    known: HashMap<JobId, Known>,
    hasher: RandomState,
}

/// No news of a version of a job: a row of the queue, with nothing beside it.
#[derive(Debug)]
struct Known {
    version: i64,
    row: u64,
    until: Timestamp,
}

impl Quiet {
    /// Those of the active jobs of which this sight may have news. What is known of others is forgotten.
    pub(super) fn may_have_news<'a>(
        &mut self,
        active: &'a [ActiveJob],
        sight: &Sight,
        now: Timestamp,
    ) -> Vec<&'a ActiveJob> {
        let mut before = mem::take(&mut self.known);
        let is_unknown = |job: &&ActiveJob| {
            let known = before.remove(&job.id).filter(|known| {
                let row = sight.queue_alone(&job.attempt).map(|row| self.hasher.hash_one(row));
                known.version == job.version && known.until > now && row == Some(known.row)
            });
            known.is_none_or(|known| {
                self.known.insert(job.id, known);
                false
            })
        };
        active.iter().filter(is_unknown).collect()
    }

    /// Takes note of those of the jobs of which this sight had none.
    pub(super) fn note(&mut self, jobs: &[Job], changed: &HashSet<JobId>, sight: &Sight, now: Timestamp) {
        for job in jobs.iter().filter(|job| !changed.contains(&job.id)) {
            let row = job.attempt.as_ref().and_then(|attempt| sight.queue_alone(&attempt.into()));
            let Some((row, until)) = row.and_then(|row| Some((row, unchanged_until(job, row, now)?))) else {
                continue;
            };
            let until = until.min(now + believed(job.id));
            let known = Known { version: job.version, row: self.hasher.hash_one(row), until };
            self.known.insert(job.id, known);
        }
    }
}

/// How long a job is believed to have no news: the same for one job each time.
fn believed(id: JobId) -> TimeDelta {
    let more = id.get().as_u128() % u128::from(BELIEVED.num_seconds().unsigned_abs());
    BELIEVED + TimeDelta::seconds(i64::try_from(more).unwrap_or_default())
}
