//! Removes everything that deleted jobs have left on the cluster.

use std::collections::HashMap;

use domain::{Job, JobId, next_purge_wait};
use persistence::{Lease, PurgeTarget, WorkStore};
use remote::Purge;
use slurm::RemotePath;

use crate::{Result, cluster_runtime::Runtime, link::cluster_link::ClusterLink, worker::Worker};

impl<L: ClusterLink, S: WorkStore> Worker<L, S> {
    pub(crate) async fn purge(&self, runtime: &Runtime<L>, lease: &Lease, jobs: Vec<Job>) -> Result {
        let ids: Vec<JobId> = jobs.iter().map(|job| job.id).collect();
        let remains = self.store.purge_targets(&ids).await?;
        let failed = self.remove_remains(runtime, &remains).await;
        let (mut gone, mut left) = (Vec::new(), Vec::new());
        for of in &remains {
            let Some(why) = failed.get(&of.job) else {
                gone.push(of.job);
                continue;
            };
            if let Some(wait) = next_purge_wait(of.failed).and_then(|wait| wait.to_std().ok()) {
                tracing::warn!(job.id = %of.job, error = why, "files of a deleted job are still there; retrying");
                left.push((of.job, wait));
            } else {
                give_up(runtime, of, why);
                gone.push(of.job);
            }
        }
        self.store.delete_purged(lease, &gone).await?;
        self.store.put_off_purges(lease, &left).await
    }

    /// Removes the files of jobs. Returns the jobs with files that may still exist, and why.
    async fn remove_remains(&self, runtime: &Runtime<L>, remains: &[PurgeTarget]) -> HashMap<JobId, String> {
        let unreadable = remains.iter().filter(|of| of.unreadable);
        let mut failed: HashMap<JobId, String> =
            unreadable.map(|of| (of.job, UNREADABLE.to_owned())).collect();
        let of_job =
            |of: &PurgeTarget| of.base_dirs.iter().map(|base| (of.job, base.clone())).collect::<Vec<_>>();
        let places: Vec<(JobId, RemotePath)> = remains.iter().flat_map(of_job).collect();
        if places.is_empty() {
            return failed;
        }
        let command = Purge { jobs: places.iter().map(|(id, base)| (base.clone(), id.get())).collect() };
        match runtime.target.link.call(&command).await {
            Ok(answer) => {
                for (place, others) in &answer.others {
                    let job = places.get(*place).map(|(id, _)| id.to_string());
                    tracing::warn!(
                        job.id = job,
                        "files with the id of a deleted job stay, because this service did not create them: {others}"
                    );
                }
                let left = answer.left.iter();
                failed.extend(
                    left.filter_map(|(place, failure)| Some((places.get(*place)?.0, failure.to_string()))),
                );
            }
            Err(error) => failed.extend(places.iter().map(|(id, _)| (*id, error.to_string()))),
        }
        failed
    }
}

const UNREADABLE: &str = "the base directory of an attempt cannot be read in the database";

/// Logs where the files are that remain for good.
fn give_up<L>(runtime: &Runtime<L>, of: &PurgeTarget, why: &str) {
    let cluster = runtime.target.cluster.name.to_string();
    let bases: Vec<&str> = of.base_dirs.iter().map(RemotePath::as_str).collect();
    tracing::warn!(
        job.id = %of.job, cluster.name = cluster, base_dirs = bases.join(", "), error = why,
        "a deleted job's files could not be removed for a day; they stay on the cluster"
    );
    metrics::counter!("tao_slurm_purges_given_up_total", "cluster" => cluster).increment(1);
}
