//! Decides before a submission whether a job runs from the cached files of its images or from the images themselves.
//!
//! A missing file is made by a job of the service. The jobs that want it wait: they need that job, and are due again when it begins
//! and when it ends.

use std::{
    collections::{BTreeMap, HashMap, HashSet},
    error::Error as _,
};

use chrono::TimeDelta;
use domain::{
    Attempt, CachedImage, Conversion, ImageChoice, ImageRef, Job, JobId, LaunchImage, Looked, Phase,
    Timestamp, Transition, cached_images, choose_image, conversion_job, given_up, run_unconverted,
};
use persistence::{ImageRecord, ImageRequest, Lease, Wait, WorkStore};
use remote::{CheckImages, Superseded};
use slurm::RemotePath;

use crate::{
    Result,
    cluster_runtime::Runtime,
    link::cluster_link::{ClusterLink, LinkError},
    steps::record::done,
    worker::Worker,
};

/// After a look without an answer.
const TRY_AGAIN: TimeDelta = TimeDelta::seconds(5);
/// In case this worker dies.
const LOOK_AGAIN: TimeDelta = TimeDelta::seconds(30);
const CHECKING: &str = "Checking the cache for the image.";
/// What is stored of the image is malformed: a person has to correct it.
const UNREADABLE: &str = "what the service has stored about its conversion cannot be read";

/// Jobs whose images are decided, and the images of jobs that use the cache.
pub(crate) struct Settled {
    pub(crate) jobs: Vec<Job>,
    pub(crate) images: HashMap<JobId, Vec<LaunchImage>>,
}

/// What a step knows of the images that its jobs want, by their paths.
#[derive(Default)]
struct Known {
    images: BTreeMap<String, CachedImage>,
    /// Why nothing could be learned of an image, and when to look again.
    unknown: BTreeMap<String, (String, Timestamp)>,
    /// Those that have to be converted into this file.
    missing: BTreeMap<String, RemotePath>,
    /// Those that are to be stored.
    changed: HashSet<String>,
    /// Those that cannot be converted, and why.
    hopeless: BTreeMap<String, String>,
}

impl<L: ClusterLink, S: WorkStore> Worker<L, S> {
    /// Separates the jobs that have to wait for an image.
    pub(crate) async fn settle_images(
        &self,
        runtime: &Runtime<L>,
        lease: &Lease,
        jobs: Vec<Job>,
    ) -> Result<Settled> {
        let requests: HashMap<JobId, Vec<CacheRequest>> = jobs
            .iter()
            .map(|job| (job.id, cache_requests(runtime, job)))
            .filter(|(_, asked)| !asked.is_empty())
            .collect();
        let mut settled = Settled { jobs, images: HashMap::new() };
        if requests.is_empty() {
            return Ok(settled);
        }
        let (wanting, rest) =
            std::mem::take(&mut settled.jobs).into_iter().partition(|job| requests.contains_key(&job.id));
        settled.jobs = rest;
        let wanting: Vec<Job> = wanting;
        let known = self.learn_of_images(runtime, &wanting, &requests).await?;
        let now = self.clock.now();
        let (mut steps, mut waits) = (Vec::<Transition>::new(), Vec::new());
        for job in wanting {
            let (mut launches, mut other) = (Vec::new(), None);
            for request in &requests[&job.id] {
                let choice = match request {
                    Ok(request) => known.choose(&job, request, now),
                    Err((image, why)) => run_unconverted(&job, image, why),
                };
                match choice {
                    ImageChoice::Launch(image) => launches.push(image),
                    // A refusal ends the job. Its other images do not matter then.
                    ImageChoice::Refused { .. } => other = Some((choice, request)),
                    _ => other = other.or(Some((choice, request))),
                }
            }
            let Some((choice, request)) = other else {
                settled.images.insert(job.id, launches);
                settled.jobs.push(job);
                continue;
            };
            match choice {
                ImageChoice::Refused { message } => {
                    // It has no open attempt, so it has nothing on the cluster.
                    steps.push(job.unstageable(&message, now));
                }
                ImageChoice::Wait { conversion, message, until } => {
                    // The step raises the version.
                    waits.push(Wait { job: job.id, conversion, until, version: job.version + 1 });
                    // Until its need is stored.
                    steps.push(waiting(job, message, now + LOOK_AGAIN));
                }
                // Somebody else has learned something meanwhile, or there is another place to look at.
                ImageChoice::Look | ImageChoice::Convert(_) | ImageChoice::Launch(_) => {
                    let path = request.as_ref().map(|request| request.cache_path.as_str());
                    let unknown = path.ok().and_then(|path| known.unknown.get(path)).cloned();
                    let (message, at) = unknown.unwrap_or_else(|| (CHECKING.to_owned(), now));
                    steps.push(waiting(job, message, at));
                }
            }
        }
        self.record(lease, &steps).await?;
        let cluster = &runtime.target.cluster.name;
        self.store.await_conversions(cluster, &waits, now).await?;
        let given_up: Vec<JobId> = known.images.values().filter_map(|image| given_up(image, now)).collect();
        self.store.give_up_conversions(cluster, &given_up, now).await?;
        if !steps.is_empty() {
            runtime.wake_lanes();
        }
        Ok(settled)
    }

    /// Looks at the files that have to be looked at, and begins the conversions that are needed.
    async fn learn_of_images(
        &self,
        runtime: &Runtime<L>,
        jobs: &[Job],
        requests: &HashMap<JobId, Vec<CacheRequest>>,
    ) -> Result<Known> {
        let cluster = &runtime.target.cluster;
        let wanted: Vec<(&Job, &ImageRequest)> = jobs
            .iter()
            .flat_map(|job| requests[&job.id].iter().flatten().map(move |request| (job, request)))
            .collect();
        let plain: Vec<ImageRequest> = wanted.iter().map(|(_, request)| (*request).clone()).collect();
        let images = self.store.request_images(&cluster.name, &plain).await?;
        let mut known = Known::default();
        known.images.extend(images.into_iter().map(|image| (image.cache_path.to_string(), image)));
        self.look(runtime, &wanted, &mut known).await;
        let now = self.clock.now();
        for (job, request) in &wanted {
            let path = request.cache_path.as_str();
            if let ImageChoice::Convert(target) = known.choose(job, request, now) {
                known.missing.entry(path.to_owned()).or_insert(target);
            }
        }
        for (path, target) in std::mem::take(&mut known.missing) {
            let Some(image) = known.images.get_mut(&path) else { continue };
            image.conversion = Some(Conversion::begun(JobId::new(self.ids.job()), target, now));
            known.changed.insert(path);
        }
        let mut records = Vec::new();
        for path in &known.changed {
            let Some(image) = known.images.get_mut(path) else { continue };
            let begun = image.conversion.clone();
            let conversion = begun.map(|begun| conversion_job(begun.job, image, &begun.target, cluster, now));
            let conversion = conversion.transpose().unwrap_or_else(|error| {
                let why = error.source().map_or_else(|| error.to_string(), |why| format!("{error}: {why}"));
                known.hopeless.insert(path.clone(), why);
                image.conversion = None;
                None
            });
            records.push(ImageRecord { image: image.clone(), conversion });
        }
        let stored = self.store.record_images(&cluster.name, &records).await?;
        for ImageRecord { image, conversion } in &records {
            if !stored.contains(&image.cache_path) {
                known.images.remove(image.cache_path.as_str());
                known.unknown.insert(image.cache_path.to_string(), (CHECKING.to_owned(), now));
            } else if let Some(job) = conversion {
                tracing::info!(image = %image.image, job.id = %job.id, "the image is to be converted");
            }
        }
        Ok(known)
    }

    /// Looks at the files of images: one remote command for all of them.
    async fn look(&self, runtime: &Runtime<L>, wanted: &[(&Job, &ImageRequest)], known: &mut Known) {
        let now = self.clock.now();
        let (mut command, mut places) = (CheckImages::default(), Vec::<String>::new());
        for (job, request) in wanted {
            let path = request.cache_path.as_str();
            let Some(image) = known.images.get(path) else { continue };
            if choose_image(job, image, now) != ImageChoice::Look {
                continue;
            }
            let place = places.iter().position(|known| known == path).unwrap_or_else(|| {
                let (by, known_at) = (places.len(), image.damaged_at.unwrap_or_default().timestamp());
                let superseded = image.superseded().iter().cloned();
                command.superseded.extend(superseded.map(|path| Superseded { by, known_at, path }));
                command.paths.push(image.place().clone());
                places.push(path.to_owned());
                by
            });
            command.jobs.push((job.id.get(), place));
        }
        if places.is_empty() {
            return;
        }
        let answer = runtime.target.link.call(&command).await;
        let now = self.clock.now();
        let found = match answer {
            Ok(found) => found,
            Err(error) => {
                let wait = match error {
                    LinkError::OverBudget { wait } => TimeDelta::from_std(wait).unwrap_or(TRY_AGAIN),
                    _ => TRY_AGAIN,
                };
                tracing::warn!(error = %error, "the files of images could not be looked at");
                let why = format!("The image cannot be looked for at the moment: {error}");
                known.unknown.extend(places.into_iter().map(|path| (path, (why.clone(), now + wait))));
                return;
            }
        };
        for (path, found) in places.into_iter().zip(found) {
            let Some(image) = known.images.get_mut(&path) else { continue };
            match image.looked(found, &self.settings.graces, now) {
                Looked::Again(at) => {
                    known.unknown.insert(path, (CHECKING.to_owned(), at));
                }
                Looked::Known(next) => {
                    *image = next;
                    known.changed.insert(path);
                }
                Looked::Missing(next) => {
                    known.missing.insert(path.clone(), next.cache_path.clone());
                    *image = next;
                    known.changed.insert(path);
                }
            }
        }
    }
}

impl Known {
    fn choose(&self, job: &Job, request: &ImageRequest, now: Timestamp) -> ImageChoice {
        let path = request.cache_path.as_str();
        if let Some(why) = self.hopeless.get(path) {
            return run_unconverted(job, &request.image, why);
        }
        match self.images.get(path) {
            _ if self.unknown.contains_key(path) => ImageChoice::Look,
            Some(image) => choose_image(job, image, now),
            None => run_unconverted(job, &request.image, UNREADABLE),
        }
    }
}

fn waiting(job: Job, message: String, until: Timestamp) -> Transition {
    done(Job { phase: Phase::ConvertingImage, message, ..job }, Some(until))
}

/// A job's request to the cache; or its image, and why the cache cannot hold it.
type CacheRequest = Result<ImageRequest, (ImageRef, String)>;

/// The job's requests to the cache; none if an attempt is open or was queued ahead, because its images are decided.
fn cache_requests<L>(runtime: &Runtime<L>, job: &Job) -> Vec<CacheRequest> {
    if job.attempt.as_ref().is_some_and(Attempt::is_open) || job.images_ahead().is_some() {
        return Vec::new();
    }
    let request =
        |image: &ImageRef| match runtime.target.cluster.images.cache_dir.join(&image.cache_file_name()) {
            Ok(cache_path) => Ok(ImageRequest { job: job.id, cache_path, image: image.clone() }),
            Err(error) => Err((image.clone(), error.to_string())),
        };
    cached_images(&job.spec).into_iter().map(request).collect()
}
