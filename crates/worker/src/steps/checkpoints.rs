//! Finds the newest checkpoint of trainings that resume, in one command.

use std::collections::HashMap;

use domain::{Job, JobId, JobPaths};
use persistence::WorkStore;
use remote::Checkpoints;
use slurm::RemotePath;

use crate::{
    cluster_runtime::Runtime, link::cluster_link::ClusterLink, steps::record::warn_of_each, worker::Worker,
};

impl<L: ClusterLink, S: WorkStore> Worker<L, S> {
    /// The checkpoints from which the jobs resume. If the cluster does not answer, the jobs are submitted anyway: the
    /// container looks for a checkpoint too.
    pub(crate) async fn checkpoints(
        &self,
        runtime: &Runtime<L>,
        jobs: &[&Job],
    ) -> HashMap<JobId, RemotePath> {
        let results = |job: &&Job| {
            let attempt = job.attempt.as_ref().filter(|_| job.resumes_from_checkpoint())?;
            Some((job.id, JobPaths::new(&attempt.job_dir, job.id).ok()?.results))
        };
        let asked: Vec<(JobId, RemotePath)> = jobs.iter().filter_map(results).collect();
        if asked.is_empty() {
            return HashMap::new();
        }
        let command = Checkpoints { jobs: asked.iter().map(|(id, dir)| (id.get(), dir.clone())).collect() };
        match runtime.target.link.call(&command).await {
            Ok(newest) => asked.iter().zip(newest).filter_map(|((id, _), path)| Some((*id, path?))).collect(),
            Err(error) => {
                let jobs = jobs.iter().copied().filter(|job| job.resumes_from_checkpoint());
                warn_of_each(jobs, &error, "the newest checkpoint could not be found");
                HashMap::new()
            }
        }
    }
}
