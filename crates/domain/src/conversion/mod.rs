//! Conversions: a registry image becomes a SquashFS file, once for all jobs that wait for it.
//!
//! A conversion belongs to one path in one cluster's cache. It is submitted, located, observed and concluded by the same
//! rules as jobs (`submission`, `outcome`). `choice` decides how a job continues.
//!
//! A file that jobs of this service may be reading is never replaced or removed. Converting a tag again, or a damaged file,
//! creates a file with a new name. A rename over the old file would keep it readable for open handles on a local or a Lustre
//! file system, but not on NFS (ESTALE), and not for a job that Slurm requeues to other nodes. A damaged file is removed once
//! another file of the image is whole and no open attempt uses the damaged one.

mod choice;
mod damaged;
mod outcome;
mod submission;
#[cfg(test)]
mod tests;

use chrono::TimeDelta;
use remote::{AttemptKey, ImageFile, Subject};
use slurm::{ExitCode, InvalidName, JobName, RemotePath, SlurmJobId, SlurmState};
use strum::{Display, EnumIter, EnumString, IntoStaticStr};
use uuid::Uuid;

use crate::{
    clock::Timestamp,
    cluster::target::ClusterName,
    image::ImageRef,
    job::{
        identity::{AttemptNo, Origin},
        submit_fence::{LOOKUP_INTERVAL, SubmitFence},
    },
};

pub use choice::{ImageChoice, cached_image, choose_image, run_unconverted, wants_fresh};
pub use outcome::{ConversionFindings, conclude_conversion, observe_conversion};
pub use submission::{
    conversion_after_lookup, conversion_after_submit, conversion_unplannable, plan_conversion,
};

/// The state of a conversion.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Display, EnumString, EnumIter, IntoStaticStr)]
#[strum(serialize_all = "snake_case")]
pub enum ConversionState {
    /// A job needs the file; the cache has to be checked.
    Requested,
    Submitting,
    SubmitUncertain,
    InQueue,
    Running,
    /// Slurm reports it finished; its result is being checked.
    Finishing,
    /// The file exists.
    Ready,
    /// The conversion failed; the next try has to wait.
    Failed,
}

/// Why a conversion in Slurm is canceled.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Display, EnumString, EnumIter, IntoStaticStr)]
#[strum(serialize_all = "snake_case")]
pub enum Abandoned {
    /// No job waits for it any more.
    Unneeded,
    /// It was pending for too long.
    NeverStarted,
}

/// The conversion of one path in a cluster's image cache.
#[derive(Debug, Clone, PartialEq)]
pub struct Conversion {
    pub id: Uuid,
    pub cluster: ClusterName,
    /// The path of the first file. With the cluster it identifies the conversion.
    pub cache_path: RemotePath,
    pub image: ImageRef,
    pub state: ConversionState,
    /// A sentence about what happens now. Waiting jobs show it too.
    pub message: String,
    /// The newest complete file.
    pub file: Option<RemotePath>,
    /// When it was last found complete; absent if a job could not use it since.
    pub file_seen_at: Option<Timestamp>,
    /// Files that a job could not unpack, although they are as long as their superblocks say. No job gets one.
    pub damaged_files: Vec<RemotePath>,
    /// When a job last found one.
    pub damaged_at: Option<Timestamp>,
    /// When the import of the file began; absent for a file that existed before.
    pub file_began_at: Option<Timestamp>,
    /// Why the last run failed.
    pub error: Option<String>,
    /// Consecutive failed runs: they set the wait before the next.
    pub failures: u32,
    /// The earliest retry after a failure.
    pub retry_at: Option<Timestamp>,
    /// Consecutive runs that the infrastructure ended.
    pub mishaps: u32,
    pub abandoned: Option<Abandoned>,
    pub run: Option<ConversionRun>,
    /// Increases with every change of the row.
    pub version: i64,
}

/// One run of a conversion, from its intent to its end.
#[derive(Debug, Clone, PartialEq)]
pub struct ConversionRun {
    pub no: AttemptNo,
    /// Its unique Slurm job name: it finds a submission whose reply was lost.
    pub token: JobName,
    /// The directory of its claim, Slurm id, marker files and logs.
    pub state_dir: RemotePath,
    /// The file that it creates.
    pub target: RemotePath,
    pub slurm_id: Option<SlurmJobId>,
    pub slurm_state: Option<SlurmState>,
    pub exit: Option<ExitCode>,
    pub intended_at: Timestamp,
    pub fence: SubmitFence,
    pub submitted_at: Option<Timestamp>,
    /// Since when it is pending; a requeue sets it anew.
    pub queued_since: Option<Timestamp>,
    /// When it started, by our clock.
    pub began_at: Option<Timestamp>,
    pub finishing_since: Option<Timestamp>,
    pub missing_since: Option<Timestamp>,
    pub setbacks: u32,
}

impl ConversionRun {
    /// Whether the outcome of a submission is not known.
    pub fn is_uncertain(&self) -> bool {
        self.fence.is_uncertain() && self.slurm_id.is_none()
    }
}

/// The jobs that wait for a conversion.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Demand {
    pub waiters: u32,
    /// The newest acceptance time of a job that requires the current image.
    pub fresh_since: Option<Timestamp>,
    /// A job may be reading a damaged file, or is about to.
    pub reads_damaged: bool,
}

/// The next step of a due conversion.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ConversionStep {
    /// Check whether the file exists.
    Check,
    Submit,
    /// Look for a submission whose reply was lost.
    Locate,
    Cancel(Abandoned),
    /// Slurm reports it finished: check its result.
    Conclude,
    /// No job waits for it, and it is not on the cluster.
    Shelve,
    /// Nothing to do: the wake-up was for an earlier state.
    Rest,
}

/// A conversion after a step, and when it is due again.
#[derive(Debug, Clone)]
pub struct ConversionTransition {
    pub conversion: Conversion,
    pub due_at: Option<Timestamp>,
}

/// The interval in which a conversion in Slurm checks whether jobs still wait for it.
const DEMAND_INTERVAL: TimeDelta = TimeDelta::seconds(30);

/// The next step of a due conversion, from its state and the jobs that wait for it.
pub fn conversion_step(conversion: &Conversion, demand: &Demand) -> ConversionStep {
    let unneeded = demand.waiters == 0;
    let run = conversion.run.as_ref();
    match conversion.state {
        ConversionState::Finishing => ConversionStep::Conclude,
        ConversionState::SubmitUncertain => ConversionStep::Locate,
        ConversionState::Submitting if unneeded && run.is_some_and(ConversionRun::is_uncertain) => {
            ConversionStep::Locate
        }
        ConversionState::Requested | ConversionState::Submitting if unneeded => ConversionStep::Shelve,
        ConversionState::Requested => ConversionStep::Check,
        ConversionState::Submitting => ConversionStep::Submit,
        ConversionState::InQueue | ConversionState::Running => match conversion.abandoned {
            None if unneeded => ConversionStep::Cancel(Abandoned::Unneeded),
            // It started at the last moment.
            Some(Abandoned::NeverStarted) if conversion.state == ConversionState::Running && !unneeded => {
                ConversionStep::Rest
            }
            Some(why) => ConversionStep::Cancel(why),
            None => ConversionStep::Rest,
        },
        ConversionState::Ready | ConversionState::Failed => ConversionStep::Rest,
    }
}

impl ConversionRun {
    /// The run of `conversion` as remote commands name it.
    pub fn key(&self, conversion: Uuid) -> AttemptKey {
        AttemptKey { subject: Subject::Conversion(conversion), name: self.token.clone() }
    }
}

impl Conversion {
    /// Whether it is in Slurm, so that polls observe it.
    pub fn is_in_slurm(&self) -> bool {
        matches!(self.state, ConversionState::InQueue | ConversionState::Running)
    }

    /// The path to check.
    pub fn place(&self) -> &RemotePath {
        self.file.as_ref().unwrap_or(&self.cache_path)
    }

    /// The conversion, requested again: the cache has to be checked.
    #[must_use]
    pub fn reopened(&self) -> Self {
        let mut next = self.clone();
        next.state = ConversionState::Requested;
        choice::CHECKING.clone_into(&mut next.message);
        next
    }

    /// The conversion without waiting jobs. The next job that needs the image reopens it.
    pub fn shelved(&self) -> ConversionTransition {
        let mut next = self.reopened();
        next.abandoned = None;
        "No job waits for this image.".clone_into(&mut next.message);
        ConversionTransition { conversion: next, due_at: None }
    }

    /// The conversion after a check of its path. `base_dir` is the cluster's base directory.
    #[must_use]
    pub fn checked(
        &self,
        found: ImageFile,
        demand: &Demand,
        base_dir: &RemotePath,
        now: Timestamp,
    ) -> ConversionTransition {
        let mut next = self.clone();
        match next.check(found, demand, base_dir, now) {
            Ok(due_at) => ConversionTransition { conversion: next, due_at },
            Err(error) => next.not_plannable(&error, now),
        }
    }

    fn check(
        &mut self,
        found: ImageFile,
        demand: &Demand,
        base_dir: &RemotePath,
        now: Timestamp,
    ) -> Result<Option<Timestamp>, InvalidName> {
        if found == ImageFile::Whole {
            self.forget_superseded(demand);
        }
        Ok(match found {
            ImageFile::Unread => Some(now + LOOKUP_INTERVAL),
            ImageFile::Whole if self.is_fresh_enough(demand) && !self.is_damaged() => {
                self.ready(self.place().clone(), self.file_began_at, now);
                None
            }
            ImageFile::Whole => {
                if !self.is_damaged() {
                    // Valid for jobs that do not require a new one.
                    (self.file, self.file_seen_at) = (Some(self.place().clone()), Some(now));
                }
                self.begin(self.fresh_target(now)?, base_dir, now)?;
                Some(now)
            }
            // A newer file is gone; the first one may still exist.
            ImageFile::Absent | ImageFile::Broken
                if self.file.as_ref().is_some_and(|f| *f != self.cache_path) =>
            {
                self.drop_file();
                Some(now)
            }
            ImageFile::Absent | ImageFile::Broken => {
                self.drop_file();
                self.begin(self.cache_path.clone(), base_dir, now)?;
                Some(now)
            }
        })
    }

    /// The conversion, failed before its submission: no path or script can be created for it.
    fn not_plannable(mut self, why: &dyn std::fmt::Display, now: Timestamp) -> ConversionTransition {
        self.failed(format!("it cannot be submitted: {why}"), now);
        ConversionTransition { conversion: self, due_at: None }
    }

    /// Whether the file is new enough: its import began after the waiting jobs were accepted.
    fn is_fresh_enough(&self, demand: &Demand) -> bool {
        demand.fresh_since.is_none_or(|since| self.file_began_at.is_some_and(|began| began >= since))
    }

    fn drop_file(&mut self) {
        (self.file, self.file_seen_at, self.file_began_at) = (None, None, None);
    }

    /// A path beside the old file, with the time in its name.
    fn fresh_target(&self, now: Timestamp) -> Result<RemotePath, InvalidName> {
        let path = self.cache_path.as_str();
        let stem = path.strip_suffix(".sqsh").unwrap_or(path);
        format!("{stem}.{}.sqsh", now.format("%Y%m%dT%H%M%S%3fZ")).parse()
    }

    /// Starts a run: an intent, to be stored before anything remote happens.
    fn begin(
        &mut self,
        target: RemotePath,
        base_dir: &RemotePath,
        now: Timestamp,
    ) -> Result<(), InvalidName> {
        let no = self.run.as_ref().map_or(AttemptNo::FIRST, |run| run.no.next());
        self.run = Some(ConversionRun {
            no,
            token: Origin::Conversion { id: self.id, run: no }.name().parse()?,
            state_dir: base_dir.join(&format!("state/images/{}/{no}", self.id.simple()))?,
            target,
            slurm_id: None,
            slurm_state: None,
            exit: None,
            intended_at: now,
            fence: SubmitFence::default(),
            submitted_at: None,
            queued_since: None,
            began_at: None,
            finishing_since: None,
            missing_since: None,
            setbacks: 0,
        });
        self.abandoned = None;
        self.state = ConversionState::Submitting;
        self.message = format!("Converting the image {}: submitting its Slurm job.", self.image);
        Ok(())
    }

    fn ready(&mut self, file: RemotePath, began_at: Option<Timestamp>, now: Timestamp) {
        self.state = ConversionState::Ready;
        self.message = format!("The image is in the cache: {file}.");
        self.damaged_files.retain(|damaged| *damaged != file);
        (self.file, self.file_seen_at, self.file_began_at) = (Some(file), Some(now), began_at);
        (self.failures, self.mishaps, self.retry_at, self.error, self.abandoned) = (0, 0, None, None, None);
    }

    /// Records a failure. The wait before a retry is five minutes; it doubles with each failure in a row, up to an hour.
    fn failed(&mut self, error: String, now: Timestamp) {
        let wait = TimeDelta::minutes(5_i64 << self.failures.min(10)).min(TimeDelta::hours(1));
        self.failures = self.failures.saturating_add(1);
        (self.mishaps, self.abandoned) = (0, None);
        self.state = ConversionState::Failed;
        self.retry_at = Some(now + wait);
        self.message = format!("The image {} could not be converted: {error}", self.image);
        self.error = Some(error);
    }
}
