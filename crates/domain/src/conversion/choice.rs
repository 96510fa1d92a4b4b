//! The image of a job: the cached file, the registry image, or a wait for the conversion.

use chrono::TimeDelta;

use super::{Conversion, ConversionState};
use crate::{
    clock::Timestamp,
    image::{ImageRef, LaunchImage},
    job::{status::Phase, stored::Job},
    request::spec::JobSpec,
    run::{diagnosis::registry_refusal, sentence::sentence},
};

/// How a job with a cached image continues.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ImageChoice {
    Launch(LaunchImage),
    Wait {
        message: String,
        /// Whether the conversion has to be reopened: it rests, and its knowledge is too old.
        reopen: bool,
    },
    /// The job requires the cached file, and there is none; or the registry refuses the image.
    Refused {
        message: String,
    },
}

/// A file that was seen this recently is not checked again.
const FRESH: TimeDelta = TimeDelta::minutes(10);

/// The image that the job needs from the cache; `None` if it uses its image directly.
pub fn cached_image(spec: &JobSpec) -> Option<&ImageRef> {
    match &spec.image {
        Some(image @ ImageRef::Registry { .. }) if spec.image_policy.use_sqsh => Some(image),
        // A conversion may run on another node, with another Docker daemon.
        Some(ImageRef::Registry { .. } | ImageRef::File(_) | ImageRef::Daemon { .. }) | None => None,
    }
}

/// Whether the job requires the current image of a moving tag. An import that began after the job was accepted satisfies
/// it, so jobs that were accepted before share one import.
pub fn wants_fresh(spec: &JobSpec) -> bool {
    spec.image_policy.force_reconvert_latest && spec.image.as_ref().is_some_and(ImageRef::is_latest)
}

/// How the job continues, given the conversion of its image.
pub fn choose_image(job: &Job, conversion: &Conversion, now: Timestamp) -> ImageChoice {
    let fresh = wants_fresh(&job.spec);
    let resting = matches!(conversion.state, ConversionState::Ready | ConversionState::Failed);
    let new_enough = conversion.file_began_at.is_some_and(|began| began >= job.created_at);
    let file = conversion.file.as_ref().filter(|_| !conversion.is_damaged() && (!fresh || new_enough));
    let seen = conversion.file_seen_at.is_some_and(|at| now - at < FRESH);
    // While a new file is created, the old one stays valid, unless a job could not use it.
    let is_valid =
        conversion.file_seen_at.is_some() && conversion.state != ConversionState::Requested && !resting;
    match file {
        Some(file) if seen || is_valid => {
            ImageChoice::Launch(LaunchImage { image: ImageRef::File(file.clone()), note: None })
        }
        None if conversion.state == ConversionState::Failed
            && conversion.retry_at.is_some_and(|at| now < at) =>
        {
            let error = conversion.error.as_deref().unwrap_or("unknown reason");
            match registry_refusal(error) {
                None => run_unconverted(job, &conversion.image, error),
                // The job has waited for this answer, and the nodes would get the same.
                Some(why) if job.phase == Phase::ConvertingImage => ImageChoice::Refused {
                    message: format!(
                        "The image {} cannot be used: {why}. {}",
                        conversion.image,
                        sentence(error)
                    ),
                },
                // Somebody may have pushed the image or installed a login since.
                Some(_) => ImageChoice::Wait { message: CHECKING.to_owned(), reopen: true },
            }
        }
        Some(_) | None => {
            let message = if resting { CHECKING.to_owned() } else { conversion.message.clone() };
            ImageChoice::Wait { message, reopen: resting || conversion.state == ConversionState::Requested }
        }
    }
}

pub(super) const CHECKING: &str = "Checking the cache for the image.";

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
    ImageChoice::Launch(LaunchImage { image: image.clone(), note: Some(note) })
}
