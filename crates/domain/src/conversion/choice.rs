//! The image of a job: the cached file, the registry image, or a wait for the conversion.

use chrono::TimeDelta;
use slurm::RemotePath;

use super::{CachedImage, Conversion, LOOK_AGAIN};
use crate::{
    clock::Timestamp,
    image::{ImageRef, LaunchImage},
    job::{identity::JobId, status::Phase, stored::Job},
    request::spec::JobSpec,
    run::{diagnosis::registry_refusal, sentence::sentence},
};

/// How a job with a cached image continues.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ImageChoice {
    Launch(LaunchImage),
    /// The file has to be looked at first.
    Look,
    /// The image has to be converted into this file.
    Convert(RemotePath),
    Wait {
        conversion: JobId,
        message: String,
        /// When to look again, if nothing happens before.
        until: Timestamp,
    },
    /// The job requires the cached file, and there is none; or the registry refuses the image.
    Refused {
        message: String,
    },
}

/// A file that was seen this recently is not looked at again.
const FRESH: TimeDelta = TimeDelta::minutes(10);

/// The images that the job needs from the cache. It uses its others directly.
pub fn cached_images(spec: &JobSpec) -> Vec<&ImageRef> {
    if !spec.image_policy.use_sqsh {
        return Vec::new();
    }
    // A conversion may run on another node, with another Docker daemon.
    let is_of_registry = |image: &&ImageRef| matches!(image, ImageRef::Registry { .. });
    spec.images().into_iter().filter(is_of_registry).collect()
}

/// Whether the job requires the current image of a moving tag. An import that began after the job was accepted satisfies
/// it, so jobs that were accepted before share one import.
fn wants_fresh(spec: &JobSpec, image: &ImageRef) -> bool {
    spec.image_policy.force_reconvert_latest && image.is_latest()
}

/// How the job continues, given what is known of one of its images.
pub fn choose_image(job: &Job, image: &CachedImage, now: Timestamp) -> ImageChoice {
    let is_new_enough = !wants_fresh(&job.spec, &image.image)
        || image.file_began_at.is_some_and(|began| began >= job.created_at);
    let is_seen = image.file_seen_at.is_some_and(|at| now - at < FRESH);
    let is_made = image.conversion.as_ref().is_some_and(|conversion| !conversion.has_ended());
    let whole = image.file.as_ref().filter(|file| !image.damaged_files.contains(file));
    match (whole, &image.conversion) {
        // While a new file is made, the old one stays valid, unless a job could not use it.
        (Some(file), _) if is_new_enough && (is_seen || is_made && image.file_seen_at.is_some()) => {
            ImageChoice::Launch(LaunchImage {
                requested: image.image.clone(),
                image: ImageRef::File(file.clone()),
                note: None,
            })
        }
        (_, Some(conversion)) if conversion.has_ended() => ImageChoice::Look,
        (_, Some(conversion)) => await_conversion(job, image, conversion, now),
        (whole, None) => {
            let has_waited = job.phase == Phase::ConvertingImage
                && image.failed_at().is_some_and(|at| at >= job.created_at);
            let rests = image.retry_at.is_some_and(|at| now < at);
            let failed = image.error.as_deref().filter(|_| rests && (whole.is_none() || !is_new_enough));
            match failed.map(|error| (error, registry_refusal(error))) {
                Some((error, None)) => run_unconverted(job, &image.image, error),
                // The job has waited for this answer, and the nodes would get the same.
                Some((error, Some(why))) if has_waited => ImageChoice::Refused {
                    message: format!("The image {} cannot be used: {why}. {}", image.image, sentence(error)),
                },
                // Somebody may have pushed the image or installed a login since.
                _ if image.is_damaged() || is_seen => match image.fresh_target(now) {
                    Ok(target) => ImageChoice::Convert(target),
                    Err(error) => run_unconverted(job, &image.image, &error.to_string()),
                },
                _ => ImageChoice::Look,
            }
        }
    }
}

fn await_conversion(job: &Job, image: &CachedImage, conversion: &Conversion, now: Timestamp) -> ImageChoice {
    let until = match conversion.patience() {
        Some((until, why)) if now >= until => return run_unconverted(job, &image.image, why),
        Some((until, _)) => until,
        None => now + LOOK_AGAIN,
    };
    let (image, by) = (&image.image, conversion.job);
    let message = match conversion.started_at {
        Some(at) => {
            let at = at.format("%H:%M:%S UTC");
            format!("Job {by} has been converting the image {image} since {at}.")
        }
        None => format!("Waits for job {by}, which is to convert the image {image}."),
    };
    ImageChoice::Wait { conversion: by, message, until }
}

/// The conversion that no job waits for any longer, because Slurm does not start it, or it is paused.
pub fn given_up(image: &CachedImage, now: Timestamp) -> Option<JobId> {
    let conversion = image.conversion.as_ref().filter(|conversion| !conversion.has_ended())?;
    conversion.patience().filter(|(until, _)| now >= *until).map(|_| conversion.job)
}

/// How a job continues without a converted file: with the registry image, unless it requires the file.
pub fn run_unconverted(job: &Job, image: &ImageRef, error: &str) -> ImageChoice {
    if job.spec.image_policy.require_sqsh {
        return ImageChoice::Refused {
            message: format!(
                "The image {image} could not be converted, and the job requires the converted file (require_sqsh): {error}"
            ),
        };
    }
    let note = format!(
        "The image {image} could not be converted ({error}), so each node pulls it from the registry when the job starts."
    );
    ImageChoice::Launch(LaunchImage { requested: image.clone(), image: image.clone(), note: Some(note) })
}
