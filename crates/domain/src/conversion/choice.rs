//! What a job is launched with: the cached file, the image itself, or nothing yet.

use chrono::TimeDelta;

use super::{Conversion, ConversionState};
use crate::{clock::Timestamp, image::ImageRef, job::stored::Job, request::spec::JobSpec};

/// The image of an attempt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LaunchImage {
    pub image: ImageRef,
    /// Why it is not the cached file that the job asked for.
    pub note: Option<String>,
}

/// What a job that wants its image from the cache does next.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ImageChoice {
    Launch(LaunchImage),
    Wait {
        message: String,
        /// Whether the conversion has to be woken: it rests, and what it knows is too old.
        reopen: bool,
    },
    /// It must have the cached file, and there is none.
    Refused {
        message: String,
    },
}

/// A file that was seen so lately is not looked for again.
const FRESH: TimeDelta = TimeDelta::minutes(10);

/// The image that the job wants from the cache; none when it takes its image as it is.
pub fn cached_image(spec: &JobSpec) -> Option<&ImageRef> {
    match &spec.image {
        Some(image @ ImageRef::Registry { .. }) if spec.image_policy.use_sqsh => Some(image),
        // The node of a conversion has another Docker daemon than the job's.
        Some(ImageRef::Registry { .. } | ImageRef::File(_) | ImageRef::Daemon { .. }) | None => None,
    }
}

/// Whether the job wants the image as it is now: of a tag that moves, and only if it says so. An import that began after
/// the job was accepted satisfies it, so that any number of jobs accepted before that share one.
pub fn wants_fresh(spec: &JobSpec) -> bool {
    spec.image_policy.force_reconvert_latest && spec.image.as_ref().is_some_and(ImageRef::is_latest)
}

/// What the job does next, given the conversion of its image.
pub fn choose_image(job: &Job, conversion: &Conversion, now: Timestamp) -> ImageChoice {
    let fresh = wants_fresh(&job.spec);
    let resting = matches!(conversion.state, ConversionState::Ready | ConversionState::Failed);
    let new_enough = conversion.file_began_at.is_some_and(|began| began >= job.created_at);
    let file = conversion.file.as_ref().filter(|_| !fresh || new_enough);
    let seen = conversion.file_seen_at.is_some_and(|at| now - at < FRESH);
    match file {
        // While another is being made, this one is as good as it was.
        Some(file) if seen || !(resting || conversion.state == ConversionState::Wanted) => {
            ImageChoice::Launch(LaunchImage { image: ImageRef::File(file.clone()), note: None })
        }
        None if conversion.state == ConversionState::Failed
            && conversion.retry_at.is_some_and(|at| now < at) =>
        {
            without(job, conversion)
        }
        Some(_) | None => {
            let message = if resting {
                "Looking for the image in the cache.".to_owned()
            } else {
                conversion.message.clone()
            };
            ImageChoice::Wait { message, reopen: resting || conversion.state == ConversionState::Wanted }
        }
    }
}

fn without(job: &Job, conversion: &Conversion) -> ImageChoice {
    let error = conversion.error.as_deref().unwrap_or("the reason was lost");
    run_unconverted(job, &conversion.image, error)
}

/// What a job does of whose image there will be no file, and why there will be none: it runs the image itself, unless it
/// must not.
pub fn run_unconverted(job: &Job, image: &ImageRef, error: &str) -> ImageChoice {
    if job.spec.image_policy.require_sqsh {
        return ImageChoice::Refused {
            message: format!(
                "The image {image} could not be converted, and the job must have it converted (require_sqsh): {error}"
            ),
        };
    }
    let note = format!(
        "The image {image} could not be converted ({error}), so each node pulls it from its registry when the job starts."
    );
    ImageChoice::Launch(LaunchImage { image: image.clone(), note: Some(note) })
}
