//! Collects exit records and logs of jobs that have ended, in one remote command, and decides the verdict on each.

use std::collections::HashMap;

use chrono::TimeDelta;
use domain::{
    DesiredState, Ending, Findings, Job, JobId, JobPaths, LogStream, ResultPlaces, Run, StatusWord,
    TaskResult, Timestamp, Transition, UnhealthyNode, cached_file_faults, cleanup_is_retried, conclude,
    next_conclusion, parts_at_the_end, progress_at_the_end, status_backlog,
};
use persistence::{Lease, WorkStore};
use remote::{Conclude, Concluded, Concluding};
use slurm::{NodeName, SlurmState, node_list};
use tokio::task::yield_now;

use crate::{
    Result,
    cluster_runtime::Runtime,
    link::cluster_link::ClusterLink,
    steps::{
        record::{done, unless_empty, warn_of_each},
        results::read,
    },
    worker::Worker,
};

/// Enough for the last 500 lines of most logs, which the failure rules search.
const TAIL_BYTES: usize = 64 * 1024;
/// The most bytes of all status files in one command; the next command reads the rest.
const STATUS_BYTES: usize = 8 * 1024 * 1024;
/// After a command without an answer.
pub(super) const TRY_AGAIN: TimeDelta = TimeDelta::seconds(5);

impl<L: ClusterLink, S: WorkStore> Worker<L, S> {
    pub(crate) async fn conclude(&self, runtime: &Runtime<L>, lease: &Lease, jobs: Vec<Job>) -> Result {
        let asked_at = self.clock.now();
        let asked = jobs.iter().filter_map(|job| concluding(job, asked_at)).collect();
        let failed = "the exit code and logs of the job could not be read";
        let found = self.left_by(runtime, asked, &jobs, failed).await;
        let sick = self.sick_nodes(runtime, nodes_of_failed(&jobs)).await;
        let spare =
            self.spare_nodes(runtime, &jobs.iter().filter(|job| has_failed(job)).collect::<Vec<_>>()).await;
        let results = results(&jobs, &found).await;
        let graces = self.graces(runtime);
        let now = self.clock.now();
        let step = |job: Job| -> Transition {
            let token = job.attempt.as_ref().map(|attempt| attempt.token.as_str());
            match token.and_then(|token| found.get(token)) {
                Some(concluded) => {
                    let findings = Findings {
                        readable: concluded.readable,
                        left_out: concluded.left_out,
                        markers: &concluded.markers,
                        status: &concluded.status,
                        out_tail: &concluded.out_tail,
                        err_tail: &concluded.err_tail,
                        role_tails: &concluded.role_tails,
                        errors: &concluded.errors,
                        ended_with: concluded.ended_with.as_ref(),
                        progress: progress_at_the_end(&job.spec, concluded.results.as_deref()),
                        results: results.get(&job.id).map(Vec::as_slice),
                        unhealthy: &of_run(&job.run, &sick),
                        spare: spare.get(&job.id).copied(),
                    };
                    match conclude(&job, &findings, &graces, now) {
                        // A job must not end before its files with secrets are removed.
                        Ending::Ended(_) | Ending::Paused(_) | Ending::Retry { .. }
                            if !concluded.removed
                                && job.key_ahead().is_none()
                                && cleanup_is_retried(job.finishing_since, now) =>
                        {
                            let due_at = next_conclusion(&job, Timestamp::MAX_UTC, now);
                            done(job, Some(due_at))
                        }
                        Ending::Ended(job) | Ending::Paused(job) => done(job, None),
                        // A cancellation must reach the job that runs, too.
                        Ending::Adopt(job) => {
                            let due_at = (job.desired != DesiredState::Run).then_some(now);
                            done(job, due_at)
                        }
                        Ending::Retry { job, due_at } => done(job, Some(due_at)),
                        Ending::Wait { job, until } => {
                            let due_at = next_conclusion(&job, until, now);
                            done(job, Some(due_at))
                        }
                    }
                }
                None => done(job, Some(now + TRY_AGAIN)),
            }
        };
        let mut steps = Vec::with_capacity(jobs.len());
        for job in &jobs {
            steps.push(step(job.clone()));
            // The search of its logs may have taken seconds. The lease of all of them is extended here.
            yield_now().await;
        }
        let steps = self.close_ahead(runtime, &jobs, steps).await;
        // First, so that the retry of the job already finds it.
        let unusable: Vec<_> = steps.iter().flat_map(|step| cached_file_faults(&step.job)).collect();
        let cluster = &runtime.target.cluster.name;
        unless_empty(unusable, async |unusable| Ok(self.store.distrust_files(cluster, &unusable).await?))
            .await?;
        self.record(lease, &steps).await?;
        // A job with another attempt is due in the other lane.
        runtime.wake_lanes();
        Ok(())
    }

    /// What ended runs of these jobs have left, by their names in Slurm. `failed` goes into the log if the cluster does not answer.
    pub(super) async fn left_by(
        &self,
        runtime: &Runtime<L>,
        asked: Vec<Concluding>,
        jobs: &[Job],
        failed: &str,
    ) -> HashMap<String, Concluded> {
        let command = Conclude { jobs: asked, tail_bytes: TAIL_BYTES, status_bytes_total: STATUS_BYTES };
        match runtime.target.link.call(&command).await {
            Ok(left) => left.into_iter().map(|concluded| (concluded.key.clone(), concluded)).collect(),
            Err(error) => {
                warn_of_each(jobs, &error, failed);
                HashMap::new()
            }
        }
    }
}

/// The results of the jobs whose files were read.
async fn results(jobs: &[Job], found: &HashMap<String, Concluded>) -> HashMap<JobId, Vec<TaskResult>> {
    let mut results = HashMap::new();
    for job in jobs {
        let token = job.attempt.as_ref().map(|attempt| attempt.token.as_str());
        let concluded = token.and_then(|token| found.get(token));
        let Some(parts) = concluded.and_then(|concluded| concluded.results.as_ref()) else { continue };
        let Some(places) = places(job) else { continue };
        results.extend(read(&job.spec.results, places, parts).await.map(|read| (job.id, read)));
    }
    results
}

fn places(job: &Job) -> Option<ResultPlaces> {
    let attempt = job.attempt.as_ref()?;
    let paths = JobPaths::new(&attempt.job_dir, job.id).ok()?;
    Some(ResultPlaces { logs: paths.log_dir(attempt).ok()?, home: paths.results })
}

/// Whether the job did not complete.
fn has_failed(job: &Job) -> bool {
    job.desired == DesiredState::Run && job.run.state != Some(SlurmState::Completed)
}

/// Whether the logs of an ended run are worth a search: it may end in an error, as far as it is known before its files are read.
pub(super) fn may_have_failed(desired: DesiredState, run: &Run) -> bool {
    desired == DesiredState::Run
        && (run.state != Some(SlurmState::Completed)
            || run.progress.final_status() == Some(StatusWord::Failure))
}

/// The nodes of failed jobs: their health may explain the failure.
fn nodes_of_failed(jobs: &[Job]) -> Vec<NodeName> {
    let failed = |job: &&Job| job.desired == DesiredState::Run && job.run.state == Some(SlurmState::Failed);
    jobs.iter().filter(failed).flat_map(|job| nodes(&job.run)).collect()
}

pub(super) fn nodes(run: &Run) -> Vec<NodeName> {
    let list = run.nodes.as_deref().unwrap_or_default();
    node_list::expand(list).iter().filter_map(|name| name.parse().ok()).collect()
}

/// Those of the nodes that a run had.
pub(super) fn of_run(run: &Run, sick: &[UnhealthyNode]) -> Vec<UnhealthyNode> {
    let own = nodes(run);
    sick.iter().filter(|node| own.contains(&node.name)).cloned().collect()
}

fn concluding(job: &Job, now: Timestamp) -> Option<Concluding> {
    let attempt = job.attempt.as_ref()?;
    let paths = JobPaths::new(&attempt.job_dir, job.id).ok()?;
    Some(Concluding {
        is_bare: false,
        may_have_failed: may_have_failed(job.desired, &job.run),
        role_logs: if job.spec.has_component_logs() { paths.log_dir(attempt).ok()? } else { None },
        key: attempt.key(job.id),
        id: attempt.slurm_id,
        state_dir: paths.state(attempt).ok()?,
        logs: [paths.log(attempt, LogStream::Out).ok()?, paths.log(attempt, LogStream::Err).ok()?].concat(),
        results_dir: paths.results.clone(),
        status: job.run.status.cursors(),
        status_backlog: status_backlog(job.finishing_since, now),
        results: parts_at_the_end(&job.spec, &places(job)?),
        remove: paths.secret_files(&job.spec),
    })
}
