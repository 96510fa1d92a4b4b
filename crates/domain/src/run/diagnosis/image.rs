//! Faults of a job's image: whose they are depends on where the image comes from.

use slurm::RemotePath;

use super::{Cause, Fault, RULES, matching::matches};
use crate::{
    image::ImageRef,
    job::{attempt::Attempt, stored::Job},
};

/// Where the nodes of an attempt took an image from.
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
    /// The source of the image that these logs are about: the one whose file they name, or else the job's first.
    pub(crate) fn of(job: &Job, attempt: &Attempt, logs: &[&[u8]]) -> Self {
        let images = job.spec.images();
        let mut sources = images.iter().map(|requested| {
            let launched = attempt.launched(requested);
            let file = launched.unwrap_or(requested).file();
            match (file, requested) {
                (Some(_), ImageRef::File(_)) => (file, Self::OwnFile),
                (Some(_), _) => (file, Self::CachedFile),
                (None, _) => (file, Self::Elsewhere),
            }
        });
        let first = sources.clone().next();
        let named = sources.find(|(file, _)| file.is_some_and(|file| names(logs, file)));
        named.or(first).map(|(_, source)| source).unwrap_or_default()
    }
}

fn names(logs: &[&[u8]], file: &RemotePath) -> bool {
    logs.iter().any(|log| memchr::memmem::find(log, file.as_str().as_bytes()).is_some())
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

/// The files of the image cache that the job's newest attempt could not use: the one that the line of its log names, or else all.
pub fn cached_file_faults(job: &Job) -> Vec<(&RemotePath, FileFault)> {
    let Some((attempt, verdict)) =
        job.attempt.as_ref().and_then(|attempt| Some((attempt, attempt.verdict.as_ref()?)))
    else {
        return Vec::new();
    };
    let rule = RULES.iter().find(|rule| Some(rule.id) == verdict.rule.as_deref());
    let fault = match rule.and_then(|rule| rule.fault) {
        Some(Fault::MissingFile) => FileFault::Missing,
        Some(Fault::DamagedFile) => FileFault::Damaged,
        Some(Fault::User | Fault::Refused | Fault::Infrastructure | Fault::Consequence) | None => {
            return Vec::new();
        }
    };
    let files: Vec<_> = attempt.images.iter().filter_map(|launch| launch.image.file()).collect();
    let line = verdict.line.as_deref().unwrap_or_default().as_bytes();
    let named = files.iter().copied().find(|file| names(&[line], file));
    let suspects = named.map_or(files, |file| vec![file]);
    suspects.into_iter().map(|file| (file, fault)).collect()
}

/// Why the registry refuses an image, if this text of `enroot import` says that it does. Every import would be refused.
pub(crate) fn registry_refusal(text: &str) -> Option<&'static str> {
    let found = matches(&[text.as_bytes()]);
    found.iter().find(|found| found.fault == Fault::Refused).map(|found| found.rule.why)
}
