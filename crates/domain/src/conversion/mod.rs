//! Conversions: a registry image becomes a SquashFS file, once for all jobs that wait for it.
//!
//! A conversion is a job of the service itself (`recipe`), which the jobs that want the file need. What is known of the file is
//! a [`CachedImage`], one for each path in a cluster's cache. `choice` decides how a job continues.
//!
//! A file that jobs of this service may be reading is never replaced or removed. Converting a tag again, or a damaged file,
//! creates a file with a new name. A rename over the old file would keep it readable for open handles on a local or a Lustre
//! file system, but not on NFS (ESTALE), and not for a job that Slurm requeues to other nodes. A damaged file is removed once
//! another file of the image is whole and no open attempt uses the damaged one.

mod choice;
mod damaged;
mod recipe;
#[cfg(test)]
mod tests;

use std::borrow::Cow;

use chrono::TimeDelta;
use remote::ImageFile;
use slurm::{InvalidName, RemotePath};

use crate::{
    clock::Timestamp,
    cluster::target::ClusterName,
    image::ImageRef,
    job::{
        identity::JobId,
        status::{Phase, Status},
        submit_fence::LOOKUP_INTERVAL,
    },
    run::graces::Graces,
};

pub use choice::{ImageChoice, cached_images, choose_image, given_up, run_unconverted};
pub use recipe::conversion_job;

/// A conversion that has not begun for this long is not waited for any longer.
const QUEUE_PATIENCE: TimeDelta = TimeDelta::hours(1);
const NEVER_STARTED: &str = "its Slurm job was pending for an hour";
/// How often a wait is looked at when nothing happens.
const LOOK_AGAIN: TimeDelta = TimeDelta::minutes(30);
/// The wait for a file that is not visible yet.
const EVIDENCE_INTERVAL: TimeDelta = TimeDelta::seconds(3);

/// What stands in the lines of Enroot's errors, and of the program's own.
const ERRORS: [&str; 5] = ["[ERROR]", "curl: (", "Checksum mismatch", "FATAL ERROR", "tao-slurm:"];

/// What is known of one path in a cluster's image cache.
#[derive(Debug, Clone, PartialEq)]
pub struct CachedImage {
    pub cluster: ClusterName,
    /// The path of the first file. With the cluster it identifies the image.
    pub cache_path: RemotePath,
    pub image: ImageRef,
    /// The newest complete file.
    pub file: Option<RemotePath>,
    /// When it was last found complete; absent if a job could not use it since.
    pub file_seen_at: Option<Timestamp>,
    /// When the import of the file began; absent for a file that existed before.
    pub file_began_at: Option<Timestamp>,
    /// Files that a job could not unpack, although they are as long as their superblocks say. No job gets one.
    pub damaged_files: Vec<RemotePath>,
    /// When a job last found one.
    pub damaged_at: Option<Timestamp>,
    /// A job may be reading one, or is about to.
    pub reads_damaged: bool,
    /// Why the last conversion failed.
    pub error: Option<String>,
    /// Consecutive failed conversions: they set the wait before the next.
    pub failures: u32,
    /// The earliest retry after a failure.
    pub retry_at: Option<Timestamp>,
    /// The newest conversion, until its result is known.
    pub conversion: Option<Conversion>,
    /// Increases with every change.
    pub version: i64,
}

/// What is stored of the job that converts an image.
#[derive(Debug, Clone, PartialEq)]
pub struct Conversion {
    pub job: JobId,
    /// The file that it makes.
    pub target: RemotePath,
    pub status: Status,
    pub phase: Phase,
    pub message: String,
    /// It is canceled, because no job needed it any more.
    pub is_unneeded: bool,
    pub created_at: Timestamp,
    /// When Slurm took its newest attempt, by our clock.
    pub submitted_at: Option<Timestamp>,
    pub started_at: Option<Timestamp>,
    pub finished_at: Option<Timestamp>,
}

impl Conversion {
    /// A conversion as its job is accepted.
    pub fn begun(job: JobId, target: RemotePath, now: Timestamp) -> Self {
        Self {
            job,
            target,
            status: Status::Pending,
            phase: Phase::Queued,
            message: String::new(),
            is_unneeded: false,
            created_at: now,
            submitted_at: None,
            started_at: None,
            finished_at: None,
        }
    }

    fn has_ended(&self) -> bool {
        self.status.is_final()
    }

    /// Until when jobs wait for it while Slurm does not start it, and why no longer. A cluster that takes no jobs, or does not answer,
    /// takes no time away, and Slurm ends a conversion that runs for too long.
    fn patience(&self) -> Option<(Timestamp, &'static str)> {
        if self.phase == Phase::Paused {
            return Some((self.created_at, "the job that converts it is paused"));
        }
        let queued_at = self.submitted_at.filter(|_| self.phase == Phase::InQueue)?;
        Some((queued_at + QUEUE_PATIENCE, NEVER_STARTED))
    }

    /// Whether it was canceled after it had been in Slurm's queue for so long that no job waited for it any more.
    fn never_started(&self, ended_at: Timestamp) -> bool {
        self.started_at.is_none() && self.submitted_at.is_some_and(|at| ended_at - at >= QUEUE_PATIENCE)
    }
}

/// An image after a look at its file.
#[derive(Debug, Clone, PartialEq)]
pub enum Looked {
    Known(CachedImage),
    /// There is no file. One has to be made at the image's own path.
    Missing(CachedImage),
    /// Nothing is known yet: look again at this time.
    Again(Timestamp),
}

impl CachedImage {
    /// An image, before anything is known of it.
    pub fn new(cluster: ClusterName, cache_path: RemotePath, image: ImageRef) -> Self {
        Self {
            cluster,
            cache_path,
            image,
            file: None,
            file_seen_at: None,
            file_began_at: None,
            damaged_files: Vec::new(),
            damaged_at: None,
            reads_damaged: false,
            error: None,
            failures: 0,
            retry_at: None,
            conversion: None,
            version: 1,
        }
    }

    /// The path to look at: what the conversion has made, or else the known file.
    pub fn place(&self) -> &RemotePath {
        match &self.conversion {
            Some(conversion) => &conversion.target,
            None => self.file.as_ref().unwrap_or(&self.cache_path),
        }
    }

    /// The image after a look at its place. A conversion has ended, if there is one.
    #[must_use]
    pub fn looked(&self, found: ImageFile, graces: &Graces, now: Timestamp) -> Looked {
        let mut next = self.clone();
        let is_whole = found == ImageFile::Whole;
        if is_whole {
            next.forget_superseded();
        }
        match next.conversion.take() {
            _ if found == ImageFile::Unread => Looked::Again(now + LOOKUP_INTERVAL),
            Some(Conversion { target, submitted_at, created_at, .. }) if is_whole => {
                // The import began later. When it did is known by the cluster's clock alone.
                (next.file, next.file_began_at) = (Some(target), Some(submitted_at.unwrap_or(created_at)));
                next.is_whole(now);
                Looked::Known(next)
            }
            Some(conversion) => {
                // It may still become visible through the shared file system.
                let until = conversion.finished_at.unwrap_or(now) + graces.finish;
                if conversion.status == Status::Done && now < until {
                    return Looked::Again((now + EVIDENCE_INTERVAL).min(until));
                }
                next.not_made(&conversion, now);
                Looked::Known(next)
            }
            None if is_whole => {
                next.file = Some(self.place().clone());
                next.is_whole(now);
                Looked::Known(next)
            }
            None => {
                (next.file, next.file_seen_at, next.file_began_at) = (None, None, None);
                // A newer file is gone; the first one may still exist.
                if *self.place() == self.cache_path { Looked::Missing(next) } else { Looked::Known(next) }
            }
        }
    }

    fn is_whole(&mut self, now: Timestamp) {
        self.damaged_files.retain(|damaged| Some(damaged) != self.file.as_ref());
        self.file_seen_at = Some(now);
        (self.failures, self.retry_at, self.error) = (0, None, None);
    }

    fn not_made(&mut self, conversion: &Conversion, now: Timestamp) {
        let ended_at = conversion.finished_at.unwrap_or(now);
        let error = if conversion.status == Status::Done {
            format!(
                "its Slurm job succeeded, but {} is not a complete image on the login host; the cache directory must be on a file \
                 system that all nodes share",
                conversion.target
            )
        } else if !conversion.is_unneeded {
            format!("Job {}: {}", conversion.job, told(&conversion.message))
        } else if conversion.never_started(ended_at) {
            NEVER_STARTED.to_owned()
        } else {
            // No job waited for it any more.
            return;
        };
        self.failures = self.failures.saturating_add(1);
        (self.error, self.retry_at) = (Some(error), Some(ended_at + self.rest()));
    }

    /// How long the image rests after a failure: five minutes, twice as long after each failure in a row, up to an hour.
    fn rest(&self) -> TimeDelta {
        TimeDelta::minutes(5_i64 << self.failures.saturating_sub(1).min(10)).min(TimeDelta::hours(1))
    }

    /// When the last conversion failed.
    fn failed_at(&self) -> Option<Timestamp> {
        Some(self.retry_at? - self.rest())
    }

    /// A path beside the old file, with the time in its name.
    fn fresh_target(&self, now: Timestamp) -> Result<RemotePath, InvalidName> {
        let path = self.cache_path.as_str();
        let stem = path.strip_suffix(".sqsh").unwrap_or(path);
        format!("{stem}.{}.sqsh", now.format("%Y%m%dT%H%M%S%3fZ")).parse()
    }
}

/// The message of a failed conversion on one line: its first line, and of the lines of the log that follow the one that says most.
fn told(message: &str) -> Cow<'_, str> {
    let Some((first, log)) = message.split_once('\n') else { return message.into() };
    let lines = || log.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with("srun: "));
    let is_error = |line: &&str| ERRORS.iter().any(|word| line.contains(word));
    // An answer that is not JSON has its error of HTTP before it, if it has one.
    let says_more = |line: &&str| is_error(line) && !line.ends_with("Could not process JSON input");
    let line = lines().rfind(says_more).or_else(|| lines().rfind(is_error)).or_else(|| lines().next_back());
    line.map_or(first.into(), |line| format!("{first} {line}").into())
}
