//! The calls about jobs, and what they share.

use std::{collections::HashMap, slice, sync::Arc};

use axum::{
    Json,
    http::StatusCode,
    response::{IntoResponse, Response},
};
use domain::{AttemptNo, Job, JobId, blames_nodes};
use slurm::SlurmJobId;

use crate::{
    auth::Caller,
    http::extract::no_such_job,
    problem::{Kind, Problem},
    state::{App, Pulses},
    view::{Freshness, JobSummary, JobView, StatusView, Surroundings, is_watched},
};

pub(crate) mod accept;
pub(crate) mod control;
pub(crate) mod create;
pub(crate) mod diagnosis;
pub(crate) mod events;
pub(crate) mod list;
pub(crate) mod logs;
pub(crate) mod metrics;
pub(crate) mod once;
pub(crate) mod page_token;
pub(crate) mod read;
pub(crate) mod results;
pub(crate) mod tasks;
pub(crate) mod timeline;
pub(crate) mod usage;
pub(crate) mod validate;
pub(crate) mod wait;

pub(crate) use create::store;

/// The number of the newest attempt; 0 before the first. A number that is asked for must not be greater.
fn newest_attempt(job: &Job, asked: Option<u32>) -> Result<u32, Problem> {
    let newest = job.attempt.as_ref().map_or(0, |attempt| attempt.no.get());
    match asked.filter(|number| *number > newest) {
        None => Ok(newest),
        Some(number) => {
            let detail = format!("Attempt {number} does not exist; the newest is {newest}.");
            Err(Problem::new(Kind::AttemptNotFound, detail))
        }
    }
}

/// A job that the caller may see. Other jobs get the same answer as jobs that do not exist.
pub(crate) async fn find(app: &App, caller: &Caller, id: JobId) -> Result<Arc<Job>, Problem> {
    match app.job_reads.find(id).await {
        Ok(Some(job)) if caller.sees(&job.owner) => Ok(job),
        Ok(Some(_)) => Err(no_such_job(id)),
        // The job does not exist, or cannot be read; this read returns the error.
        Ok(None) => {
            let job = app.store.find_job(id, &caller.viewer()).await?;
            job.map(Arc::new).ok_or_else(|| no_such_job(id))
        }
        Err(error) => Err(Problem::from(&*error)),
    }
}

pub(crate) async fn freshness(app: &App, job: &Job) -> Result<Freshness, Problem> {
    // Only jobs in Slurm need the cluster's last poll; the others save a query.
    let pulses = if is_watched(job.phase) { app.pulses().await? } else { Arc::<Pulses>::default() };
    let freshness = Freshness::of(job, &pulses, app.clock.now());
    if !blames_nodes(job) {
        return Ok(freshness);
    }
    let known = app.partitions().await?;
    let reported = known.get(&job.cluster).and_then(|known| known.limits(app.clock.now()));
    Ok(freshness.with_nodes(reported.is_some_and(|reported| reported.has_nodes_for(job))))
}

async fn status_of(app: &App, job: &Job) -> Result<StatusView, Problem> {
    Ok(StatusView::new(job, freshness(app, job).await?))
}

/// The answer to a request that changes the desired state: the job's status.
async fn answered(app: &App, status: StatusCode, job: &Job) -> Result<Response, Problem> {
    Ok((status, Json(status_of(app, job).await?)).into_response())
}

async fn whole(app: &App, job: &Job) -> Result<JobView, Problem> {
    let (known, earlier) = (app.clusters.now(), earlier(app, slice::from_ref(job)).await?);
    let (cluster, freshness) = (known.get(&job.cluster), freshness(app, job).await?);
    let earlier = earlier.get(&job.id).map_or(&[][..], Vec::as_slice);
    Ok(JobView::new(job, Surroundings { cluster, freshness, earlier }))
}

/// The jobs of a page.
async fn summaries(app: &App, jobs: &[Job]) -> Result<Vec<JobSummary>, Problem> {
    let (known, earlier) = (app.clusters.now(), earlier(app, jobs).await?);
    let mut views = Vec::with_capacity(jobs.len());
    for job in jobs {
        let freshness = freshness(app, job).await?;
        let earlier = earlier.get(&job.id).map_or(&[][..], Vec::as_slice);
        let around = Surroundings { cluster: known.get(&job.cluster), freshness, earlier };
        views.push(JobSummary::new(job, around));
    }
    Ok(views)
}

/// The Slurm ids of the attempts before the newest one of each job, with one statement for all jobs, and none without a retry.
async fn earlier(app: &App, jobs: &[Job]) -> Result<HashMap<JobId, Vec<SlurmJobId>>, Problem> {
    let is_retried = |job: &&Job| job.attempt.as_ref().is_some_and(|attempt| attempt.no > AttemptNo::FIRST);
    let retried: Vec<JobId> = jobs.iter().filter(is_retried).map(|job| job.id).collect();
    if retried.is_empty() { Ok(HashMap::new()) } else { Ok(app.store.earlier_slurm_ids(&retried).await?) }
}
