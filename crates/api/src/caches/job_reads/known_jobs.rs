//! A cache of whole jobs.
//!
//! Most reads are of unchanged jobs. Each read still asks the database which jobs exist and which versions they have; only
//! jobs with another version are read whole.

use std::{
    collections::{HashMap, VecDeque},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use domain::{Job, JobId};
use persistence::{JobVersion, Store, StoreError};

/// The most jobs in the cache.
const ROOM: usize = 1024;
/// The largest cached job, in bytes of JSON: specifications and metrics can be large, and short strings take ten times as
/// much memory.
const LARGEST: usize = 4 * 1024;

pub(crate) struct KnownJobs {
    store: Store,
    kept: Mutex<Kept>,
}

impl KnownJobs {
    pub(crate) fn new(store: Store) -> Self {
        Self { store, kept: Mutex::default() }
    }

    /// The current state of those of the jobs that exist and can be read.
    pub(crate) async fn read(&self, ids: Vec<JobId>) -> Result<HashMap<JobId, Arc<Job>>, StoreError> {
        let (mut found, mut unread) = self.kept().take_part(ids);
        if !found.is_empty() {
            let cached: Vec<_> = found.keys().copied().collect();
            let versions = self.store.job_versions(&cached).await?;
            found.retain(|id, job| match versions.get(id) {
                Some(version) if *version == JobVersion::of(job) => true,
                Some(_) => {
                    unread.push(*id);
                    false
                }
                None => {
                    self.kept().remove(*id);
                    false
                }
            });
        }
        if !unread.is_empty() {
            let read: Vec<_> = self.store.find_jobs(&unread).await?.into_values().map(Arc::new).collect();
            let small: Vec<_> = read.iter().filter(|job| is_small(job)).collect();
            let mut kept = self.kept();
            for job in small {
                kept.keep(job);
            }
            found.extend(read.iter().map(|job| (job.id, Arc::clone(job))));
        }
        Ok(found)
    }

    fn kept(&self) -> MutexGuard<'_, Kept> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[derive(Default)]
struct Kept {
    jobs: HashMap<JobId, Arc<Job>>,
    /// The ids, in the order of insertion.
    order: VecDeque<JobId>,
}

impl Kept {
    /// The cached jobs, and the ids of the others.
    fn take_part(&self, ids: Vec<JobId>) -> (HashMap<JobId, Arc<Job>>, Vec<JobId>) {
        let (cached, others): (Vec<_>, Vec<_>) = ids.into_iter().partition(|id| self.jobs.contains_key(id));
        let job = |id: JobId| Some((id, Arc::clone(self.jobs.get(&id)?)));
        (cached.into_iter().filter_map(job).collect(), others)
    }

    fn keep(&mut self, job: &Arc<Job>) {
        if self.jobs.insert(job.id, Arc::clone(job)).is_none() {
            self.order.push_back(job.id);
        }
        if self.order.len() > ROOM
            && let Some(oldest) = self.order.pop_front()
        {
            self.jobs.remove(&oldest);
        }
    }

    fn remove(&mut self, id: JobId) {
        if self.jobs.remove(&id).is_some() {
            self.order.retain(|one| *one != id);
        }
    }
}

fn is_small(job: &Job) -> bool {
    // Writing to a full buffer fails.
    let mut room = vec![0; LARGEST];
    serde_json::to_writer(&mut room[..], &(&job.spec, &job.run.progress, &job.message, &job.run.status))
        .is_ok()
}

#[cfg(test)]
mod tests;
