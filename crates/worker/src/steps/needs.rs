//! Jobs that wait for other jobs. Nothing remote happens.

use domain::{Job, after_needs};
use persistence::{Lease, WorkStore};

use crate::{Result, link::cluster_link::ClusterLink, worker::Worker};

impl<L: ClusterLink, S: WorkStore> Worker<L, S> {
    /// Looks at the jobs that these wait for: one query for all of them.
    pub(crate) async fn await_needs(&self, lease: &Lease, jobs: Vec<Job>) -> Result {
        let ids: Vec<_> = jobs.iter().map(|job| job.id).collect();
        let mut needed = self.store.needed(&ids).await?;
        let now = self.clock.now();
        let (mut changed, mut same) = (Vec::new(), Vec::new());
        for job in jobs {
            let next = after_needs(&job, &needed.remove(&job.id).unwrap_or_default(), now);
            if next.job == job { same.push(job) } else { changed.push(next) }
        }
        self.store.put_off(lease, &same, None).await?;
        self.record(lease, &changed).await?;
        Ok(())
    }

    /// Tasks of these jobs that wait for tasks of other jobs may be submitted once those are done: one query for all of them.
    pub(super) async fn release_held(&self, jobs: &mut [Job]) -> Result {
        let ids: Vec<_> = jobs.iter().filter(|job| job.has_held_tasks()).map(|job| job.id).collect();
        let needed = self.store.needed(&ids).await?;
        for job in jobs {
            if let Some(needed) = needed.get(&job.id) {
                job.release_tasks(needed);
            }
        }
        Ok(())
    }
}
