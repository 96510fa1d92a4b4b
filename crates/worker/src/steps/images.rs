//! Decides before a submission whether a job runs from the cached file of its image or from the image itself.
//!
//! This file sends no command. A missing cached file is the task of the image's conversion (`conversions`), which wakes the
//! jobs that wait for it.

use std::{collections::HashMap, time::Duration};

use chrono::TimeDelta;
use domain::{
    Attempt, Conversion, ImageChoice, ImageRef, Job, JobId, LaunchImage, Phase, Transition, cached_image,
    choose_image, run_unconverted, wants_fresh,
};
use persistence::{ImageRequest, Lease, StepRecord, WorkStore};

use crate::{
    Result, cluster_runtime::Runtime, link::cluster_link::ClusterLink, steps::record::done, worker::Worker,
};

/// The retry interval in case a wake-up was lost.
const LOOK_AGAIN: Duration = Duration::from_secs(30);

/// Jobs whose image is decided, and the images of jobs that use the cache.
pub(crate) struct Settled {
    pub(crate) jobs: Vec<Job>,
    pub(crate) images: HashMap<JobId, LaunchImage>,
}

/// Jobs that cannot be submitted yet.
#[derive(Default)]
struct Unsettled {
    waiting: Vec<StepRecord>,
    /// Jobs that wait already, with the same message.
    unchanged: Vec<Job>,
    refused: Vec<StepRecord>,
}

impl<L: ClusterLink, S: WorkStore> Worker<L, S> {
    /// Separates the jobs whose image must be converted first: they wait until the conversion wakes them.
    pub(crate) async fn settle_images(
        &self,
        runtime: &Runtime<L>,
        lease: &Lease,
        jobs: Vec<Job>,
    ) -> Result<Settled> {
        let requests: HashMap<JobId, CacheRequest> =
            jobs.iter().filter_map(|job| Some((job.id, cache_request(runtime, job)?))).collect();
        let mut settled = Settled { jobs, images: HashMap::new() };
        if requests.is_empty() {
            return Ok(settled);
        }
        let cluster = &runtime.target.cluster.name;
        let plain: Vec<ImageRequest> =
            requests.values().filter_map(|request| request.as_ref().ok()).cloned().collect();
        let found = self.store.request_images(cluster, &plain).await?;
        let now = self.clock.now();
        let (mut unsettled, mut reopened, mut waiters) = (Unsettled::default(), Vec::new(), Vec::new());
        for job in std::mem::take(&mut settled.jobs) {
            let Some(request) = requests.get(&job.id) else {
                settled.jobs.push(job);
                continue;
            };
            let conversion = match request {
                Ok(request) => found.iter().find(|conversion| conversion.cache_path == request.cache_path),
                Err(_) => None,
            };
            let choice = match (request, conversion) {
                (Ok(_), Some(conversion)) => choose_image(&job, conversion, now),
                (Ok(request), None) => run_unconverted(&job, &request.image, UNREADABLE),
                (Err((image, why)), _) => run_unconverted(&job, image, why),
            };
            match choice {
                ImageChoice::Launch(image) => {
                    settled.images.insert(job.id, image);
                    settled.jobs.push(job);
                }
                ImageChoice::Refused { message } => {
                    let Transition { job, due_at } = job.unstageable(&message, now);
                    unsettled.refused.push(done(job, due_at));
                }
                ImageChoice::Wait { message, reopen } => {
                    if let Some(conversion) = conversion {
                        if reopen {
                            reopened.push(conversion);
                        }
                        waiters.push((job.id, conversion));
                    }
                    unsettled.wait(job, message, now + TimeDelta::seconds(30));
                }
            }
        }
        self.store_waiting(lease, unsettled, &waiters).await?;
        reopened.sort_unstable_by_key(|conversion| conversion.id);
        reopened.dedup_by_key(|conversion| conversion.id);
        self.store.reopen_conversions(cluster, &reopened).await?;
        if !reopened.is_empty() {
            runtime.wake_lanes();
        }
        Ok(settled)
    }

    async fn store_waiting(
        &self,
        lease: &Lease,
        unsettled: Unsettled,
        waiters: &[(JobId, &Conversion)],
    ) -> Result {
        // These jobs have no open attempt, so they have nothing on the cluster.
        self.record(lease, &unsettled.refused).await?;
        if waiters.is_empty() {
            return Ok(());
        }
        self.record(lease, &unsettled.waiting).await?;
        self.store.put_off(lease, &unsettled.unchanged, Some(LOOK_AGAIN)).await?;
        self.store.wake_changed(waiters).await
    }
}

impl Unsettled {
    fn wait(&mut self, job: Job, message: String, until: domain::Timestamp) {
        if job.phase == Phase::ConvertingImage && job.message == message {
            self.unchanged.push(job);
        } else {
            let waiting = Job { phase: Phase::ConvertingImage, message, ..job };
            self.waiting.push(done(waiting, Some(until)));
        }
    }
}

/// The row of the image's conversion is malformed: a person has to correct it.
const UNREADABLE: &str = "what the service has stored about its conversion cannot be read";

/// A job's request to the cache; or its image, and why the cache cannot hold it.
type CacheRequest = Result<ImageRequest, (ImageRef, String)>;

/// The job's request to the cache; none if an attempt is open, because its image was decided when it began.
fn cache_request<L>(runtime: &Runtime<L>, job: &Job) -> Option<CacheRequest> {
    if job.attempt.as_ref().is_some_and(Attempt::is_open) {
        return None;
    }
    let image = cached_image(&job.spec)?.clone();
    let request = match runtime.target.cluster.images.cache_dir.join(&image.cache_file_name()) {
        Ok(cache_path) => Ok(ImageRequest { job: job.id, cache_path, image, fresh: wants_fresh(&job.spec) }),
        Err(error) => Err((image, error.to_string())),
    };
    Some(request)
}
