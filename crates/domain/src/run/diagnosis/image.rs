//! Faults of a job's image: whose they are depends on where the image comes from.

use slurm::RemotePath;

use super::{Cause, Fault, RULES, matches};
use crate::{
    image::ImageRef,
    job::{attempt::Attempt, stored::Job},
};

/// Where the nodes of an attempt took its image from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum ImageSource {
    /// The job names the file.
    OwnFile,
    /// The cache has the file.
    CachedFile,
    /// A registry or the node's Docker daemon, or the attempt has no image.
    #[default]
    Elsewhere,
}

impl ImageSource {
    pub(crate) fn of(job: &Job, attempt: &Attempt) -> Self {
        let chosen = attempt.image.as_ref().map(|launch| &launch.image);
        match (chosen, &job.spec.image) {
            (None | Some(ImageRef::File(_)), Some(ImageRef::File(_))) => Self::OwnFile,
            (Some(ImageRef::File(_)), _) => Self::CachedFile,
            _ => Self::Elsewhere,
        }
    }
}

impl Fault {
    pub(super) fn cause(self, image: ImageSource) -> Cause {
        match (self, image) {
            (Self::User | Self::Refused, _)
            | (Self::MissingFile | Self::DamagedFile, ImageSource::OwnFile) => Cause::User,
            (Self::MissingFile | Self::DamagedFile, ImageSource::CachedFile) => Cause::CachedFile,
            // The node unpacks its own file.
            (Self::MissingFile | Self::DamagedFile, ImageSource::Elsewhere)
            | (Self::Infrastructure | Self::Consequence, _) => Cause::Infrastructure,
        }
    }
}

/// What a job found wrong with a file of the image cache.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FileFault {
    /// It does not exist.
    Missing,
    /// It cannot be unpacked or read.
    Damaged,
}

/// The file of the image cache that the job's newest attempt could not use.
pub fn cached_file_fault(job: &Job) -> Option<(&RemotePath, FileFault)> {
    let attempt = job.attempt.as_ref()?;
    let Some(ImageRef::File(file)) = attempt.image.as_ref().map(|launch| &launch.image) else { return None };
    let id = attempt.verdict.as_ref()?.rule.as_deref()?;
    match RULES.iter().find(|rule| rule.id == id)?.fault {
        Fault::MissingFile => Some((file, FileFault::Missing)),
        Fault::DamagedFile => Some((file, FileFault::Damaged)),
        Fault::User | Fault::Refused | Fault::Infrastructure | Fault::Consequence => None,
    }
}

/// Why the registry refuses an image, if this text of `enroot import` says that it does. Every import would be refused.
pub(crate) fn registry_refusal(text: &str) -> Option<&'static str> {
    let found = matches(&[text.as_bytes()]);
    found.iter().find(|(rule, ..)| rule.fault == Fault::Refused).map(|(rule, ..)| rule.why)
}
