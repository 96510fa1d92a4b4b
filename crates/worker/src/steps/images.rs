//! Before a job is submitted: what it is launched with, the cached file of its image or the image itself.
//!
//! Nothing here asks a cluster. What is not known yet is found out by the image's conversion (`conversions`), which
//! wakes the jobs that wait for it.

use std::{collections::HashMap, time::Duration};

use chrono::TimeDelta;
use domain::{
    Attempt, Conversion, ImageChoice, ImageRef, Job, JobId, LaunchImage, Phase, cached_image, choose_image,
    run_unconverted, wants_fresh,
};
use persistence::{ImageRequest, Lease, StepRecord, WorkStore};

use crate::{
    Result, cluster_runtime::Runtime, link::cluster_link::ClusterLink, steps::record::done, worker::Worker,
};

/// A wake-up that was lost is made good by a look so often.
const LOOK_AGAIN: Duration = Duration::from_secs(30);

/// Jobs whose image is settled, and what those of them are launched with that wanted it from the cache.
pub(crate) struct Settled {
    pub(crate) jobs: Vec<Job>,
    pub(crate) images: HashMap<JobId, LaunchImage>,
}

/// What becomes of jobs that cannot be submitted yet.
#[derive(Default)]
struct Unsettled {
    waiting: Vec<StepRecord>,
    /// They wait already and say so.
    unchanged: Vec<Job>,
    refused: Vec<StepRecord>,
}

impl<L: ClusterLink, S: WorkStore> Worker<L, S> {
    /// Sorts out the jobs whose image has to be converted first: they wait, and are due again when it is.
    pub(crate) async fn settle_images(
        &self,
        runtime: &Runtime<L>,
        lease: &Lease,
        jobs: Vec<Job>,
    ) -> Result<Settled> {
        let wishes: HashMap<JobId, Wish> =
            jobs.iter().filter_map(|job| Some((job.id, wish(runtime, job)?))).collect();
        let mut settled = Settled { jobs, images: HashMap::new() };
        if wishes.is_empty() {
            return Ok(settled);
        }
        let cluster = &runtime.target.cluster.name;
        let plain: Vec<ImageRequest> =
            wishes.values().filter_map(|wish| wish.as_ref().ok()).cloned().collect();
        let found = self.store.want_images(cluster, &plain).await?;
        let now = self.clock.now();
        let (mut unsettled, mut reopened, mut sleepers) = (Unsettled::default(), Vec::new(), Vec::new());
        for job in std::mem::take(&mut settled.jobs) {
            let Some(wish) = wishes.get(&job.id) else {
                settled.jobs.push(job);
                continue;
            };
            let conversion = match wish {
                Ok(wish) => found.iter().find(|conversion| conversion.cache_path == wish.cache_path),
                Err(_) => None,
            };
            let choice = match (wish, conversion) {
                (Ok(_), Some(conversion)) => choose_image(&job, conversion, now),
                (Ok(wish), None) => run_unconverted(&job, &wish.image, UNREADABLE),
                (Err((image, why)), _) => run_unconverted(&job, image, why),
            };
            match choice {
                ImageChoice::Launch(image) => {
                    settled.images.insert(job.id, image);
                    settled.jobs.push(job);
                }
                ImageChoice::Refused { message } => {
                    unsettled.refused.push(done(self.unstageable(&job, &message), None));
                }
                ImageChoice::Wait { message, reopen } => {
                    if let Some(conversion) = conversion {
                        if reopen {
                            reopened.push(conversion);
                        }
                        sleepers.push((job.id, conversion));
                    }
                    unsettled.wait(job, message, now + TimeDelta::seconds(30));
                }
            }
        }
        self.put_to_sleep(lease, unsettled, &sleepers).await?;
        reopened.sort_unstable_by_key(|conversion| conversion.id);
        reopened.dedup_by_key(|conversion| conversion.id);
        self.store.reopen_conversions(cluster, &reopened).await?;
        if !reopened.is_empty() {
            runtime.wake_lanes();
        }
        Ok(settled)
    }

    async fn put_to_sleep(
        &self,
        lease: &Lease,
        unsettled: Unsettled,
        sleepers: &[(JobId, &Conversion)],
    ) -> Result {
        // No attempt of theirs is open, so nothing of them is on the cluster.
        self.record(lease, &unsettled.refused).await?;
        if sleepers.is_empty() {
            return Ok(());
        }
        self.record(lease, &unsettled.waiting).await?;
        self.store.put_off(lease, &unsettled.unchanged, Some(LOOK_AGAIN)).await?;
        self.store.wake_overtaken(sleepers).await
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

/// Somebody has to mend the row of the image's conversion.
const UNREADABLE: &str = "what the service has stored about its conversion cannot be read";

/// What a job wants of the cache; or the image, and why the cache has no place for it.
type Wish = Result<ImageRequest, (ImageRef, String)>;

/// What the job wants of the cache, unless an attempt is under way: its image was settled when it was made.
fn wish<L>(runtime: &Runtime<L>, job: &Job) -> Option<Wish> {
    if job.attempt.as_ref().is_some_and(Attempt::is_open) {
        return None;
    }
    let image = cached_image(&job.spec)?.clone();
    let wish = match runtime.target.cluster.images.cache_dir.join(&image.cache_file_name()) {
        Ok(cache_path) => Ok(ImageRequest { job: job.id, cache_path, image, fresh: wants_fresh(&job.spec) }),
        Err(error) => Err((image, error.to_string())),
    };
    Some(wish)
}
