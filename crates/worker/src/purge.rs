//! Jobs that their owners have deleted with everything they left on the cluster.

use std::time::Duration;

use domain::{Job, JobId};
use persistence::{Lease, StoreError, WorkStore};
use slurm::Purge;

use crate::{
    link::ClusterLink,
    steps::warn_of_each,
    worker::{Site, Worker},
};

/// After a cluster that could not remove everything.
const TRY_AGAIN: Duration = Duration::from_mins(1);

impl<L: ClusterLink, S: WorkStore> Worker<L, S> {
    pub(crate) async fn purge(
        &self,
        site: &Site<L>,
        lease: &Lease,
        jobs: Vec<Job>,
    ) -> Result<(), StoreError> {
        if jobs.is_empty() {
            return Ok(());
        }
        let ids: Vec<JobId> = jobs.iter().map(|job| job.id).collect();
        // Each attempt has kept the base directory of its time.
        let places = self.store.base_dirs(&ids).await?;
        let command = Purge { jobs: places.iter().map(|(id, base)| (base.clone(), id.get())).collect() };
        let left: Vec<JobId> = match site.target.link.purge(&command).await {
            Ok(answer) => {
                for (place, failure) in &answer.left {
                    let job = places.get(*place).map(|(id, _)| id.to_string());
                    tracing::warn!(job.id = job, error = %failure, "a deleted job's files are still there; trying again");
                }
                answer.left.iter().filter_map(|(place, _)| Some(places.get(*place)?.0)).collect()
            }
            Err(error) => {
                warn_of_each(&jobs, &error, "a deleted job's files could not be removed; trying again");
                ids.clone()
            }
        };
        let gone: Vec<JobId> = ids.iter().copied().filter(|id| !left.contains(id)).collect();
        self.store.delete_purged(lease, &gone).await?;
        let left: Vec<Job> = jobs.into_iter().filter(|job| left.contains(&job.id)).collect();
        self.store.put_off(lease, &left, Some(TRY_AGAIN)).await
    }
}
