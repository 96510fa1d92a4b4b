//! Making a SquashFS file of a registry's image, once for all the jobs that wait for it.
//!
//! A conversion belongs to one place in one cluster's cache. It is submitted, looked for, watched and concluded by the
//! rules that hold for jobs (`submission`, `outcome`); what a job makes of it is in `choice`.
//!
//! A file that jobs may be reading is never replaced and never removed. Where a tag is converted again, the new file
//! has a name of its own: a rename over the old one would keep it readable for those who have it open on a local or a
//! Lustre file system, but not on NFS (ESTALE), and not for a job that Slurm starts again on other nodes.

mod choice;
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
    job::{attempt::AttemptNo, submit_fence::SubmitFence},
};

pub use choice::{ImageChoice, LaunchImage, cached_image, choose_image, run_unconverted, wants_fresh};
pub use outcome::{ConversionFindings, conversion_concluded, conversion_seen};
pub use submission::{conversion_located, conversion_sent, conversion_unplannable, plan_conversion};

/// Where a conversion stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Display, EnumString, EnumIter, IntoStaticStr)]
#[strum(serialize_all = "snake_case")]
pub enum ConversionState {
    /// Somebody wants the file; whether it is there has to be looked up.
    Wanted,
    Submitting,
    SubmitUncertain,
    InQueue,
    Running,
    /// Slurm is through with it; its last words are being read.
    Finishing,
    /// The file is there.
    Ready,
    /// It could not be made; the next try has to wait.
    Failed,
}

/// Why a conversion that Slurm has is canceled.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Display, EnumString, EnumIter, IntoStaticStr)]
#[strum(serialize_all = "snake_case")]
pub enum Abandoned {
    /// No job waits for it any more.
    Unneeded,
    /// It has found no place to run for too long.
    NeverStarted,
}

/// One place in a cluster's cache of images.
#[derive(Debug, Clone)]
pub struct Conversion {
    pub id: Uuid,
    pub cluster: ClusterName,
    /// Where the file is made the first time. With the cluster it is what a conversion is known by.
    pub cache_path: RemotePath,
    pub image: ImageRef,
    pub state: ConversionState,
    /// What happens now: the jobs that wait say it too.
    pub message: String,
    /// The newest file that was seen whole.
    pub file: Option<RemotePath>,
    pub file_seen_at: Option<Timestamp>,
    /// When the import that made the file began; none for a file that was found.
    pub file_began_at: Option<Timestamp>,
    /// Why the last run failed, in the words of whoever refused.
    pub error: Option<String>,
    /// Runs that failed, in a row: they set the pace of the next.
    pub failures: u32,
    /// Not before this is it tried again after a failure.
    pub retry_at: Option<Timestamp>,
    /// Runs that the infrastructure ended, in a row.
    pub mishaps: u32,
    pub abandoned: Option<Abandoned>,
    pub run: Option<ConversionRun>,
    /// Rises with every change of the row.
    pub version: i64,
}

/// One intent to convert, from the intent to its end.
#[derive(Debug, Clone)]
pub struct ConversionRun {
    pub no: AttemptNo,
    /// Its unique Slurm job name: it finds a submission whose answer was lost.
    pub token: JobName,
    /// Claim, Slurm id, markers and logs.
    pub state_dir: RemotePath,
    /// The file that it makes.
    pub target: RemotePath,
    pub slurm_id: Option<SlurmJobId>,
    pub slurm_state: Option<SlurmState>,
    pub exit: Option<ExitCode>,
    pub intended_at: Timestamp,
    pub fence: SubmitFence,
    pub submitted_at: Option<Timestamp>,
    /// Since when it waits in Slurm's queue without having run: a run that Slurm puts back waits anew.
    pub queued_since: Option<Timestamp>,
    /// When it began to run, by our clock.
    pub began_at: Option<Timestamp>,
    pub finishing_since: Option<Timestamp>,
    pub missing_since: Option<Timestamp>,
    pub setbacks: u32,
}

impl ConversionRun {
    /// Whether a submission was sent of which nobody knows yet what became of it.
    pub fn is_unanswered(&self) -> bool {
        self.fence.is_unanswered() && self.slurm_id.is_none()
    }
}

/// Who waits for a conversion.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Demand {
    pub waiters: u32,
    /// When the youngest of those was accepted that want the image as it is now, not as it was.
    pub fresh_since: Option<Timestamp>,
}

/// The one thing that a due conversion needs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ConversionStep {
    /// Look whether the file is there.
    Check,
    Submit,
    /// A submission's answer was lost: look for it.
    Locate,
    Cancel(Abandoned),
    /// Slurm is through with it: read its last words.
    Conclude,
    /// Nobody waits for it, and nothing of it is on the cluster.
    Shelve,
    /// Nothing to do; the wake-up was for an earlier state.
    Rest,
}

/// A conversion after a step, and when it is due again.
#[derive(Debug, Clone)]
pub struct ConversionTransition {
    pub conversion: Conversion,
    pub due_at: Option<Timestamp>,
}

/// While Slurm has it, this often somebody looks whether anybody still waits for it.
pub(crate) const LOOK_ROUND: TimeDelta = TimeDelta::seconds(30);
/// A file that could not be looked for.
const LOOK_AGAIN: TimeDelta = TimeDelta::seconds(10);

/// What a due conversion needs, from where it stands and who waits for it.
pub fn conversion_step(conversion: &Conversion, demand: &Demand) -> ConversionStep {
    let unneeded = demand.waiters == 0;
    let run = conversion.run.as_ref();
    match conversion.state {
        ConversionState::Finishing => ConversionStep::Conclude,
        ConversionState::SubmitUncertain => ConversionStep::Locate,
        ConversionState::Submitting if unneeded && run.is_some_and(ConversionRun::is_unanswered) => {
            ConversionStep::Locate
        }
        ConversionState::Wanted | ConversionState::Submitting if unneeded => ConversionStep::Shelve,
        ConversionState::Wanted => ConversionStep::Check,
        ConversionState::Submitting => ConversionStep::Submit,
        ConversionState::InQueue | ConversionState::Running => match conversion.abandoned {
            None if unneeded => ConversionStep::Cancel(Abandoned::Unneeded),
            // It has found a place at the last moment.
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

/// The Slurm job name of a run.
pub(crate) fn token(id: Uuid, run: AttemptNo) -> String {
    format!("tao-sqsh-{}-{run}", id.simple())
}

impl Conversion {
    /// Whether only polls of the cluster tell more.
    pub fn is_in_slurm(&self) -> bool {
        matches!(self.state, ConversionState::InQueue | ConversionState::Running)
    }

    /// The file to look for.
    pub fn place(&self) -> &RemotePath {
        self.file.as_ref().unwrap_or(&self.cache_path)
    }

    /// DesiredState again: whether the file is there, or can be made now, has to be found out.
    #[must_use]
    pub fn reopened(&self) -> Self {
        let mut next = self.clone();
        next.state = ConversionState::Wanted;
        "Looking for the image in the cache.".clone_into(&mut next.message);
        next
    }

    /// Nobody waits for it: it is taken up again when somebody does.
    pub fn shelved(&self) -> ConversionTransition {
        let mut next = self.reopened();
        next.abandoned = None;
        "Nobody waits for this image.".clone_into(&mut next.message);
        ConversionTransition { conversion: next, due_at: None }
    }

    /// The conversion after a look at its place. `base_dir` is where the service keeps what is its own.
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
        Ok(match found {
            ImageFile::Unread => Some(now + LOOK_AGAIN),
            ImageFile::Whole if self.is_fresh_enough(demand) => {
                self.ready(self.place().clone(), self.file_began_at, now);
                None
            }
            ImageFile::Whole => {
                // Good enough for those who do not ask for a new one.
                (self.file, self.file_seen_at) = (Some(self.place().clone()), Some(now));
                self.begin(self.fresh_target(now)?, base_dir, now)?;
                Some(now)
            }
            // A newer file has gone; the first one may still be there.
            ImageFile::Absent | ImageFile::Broken
                if self.file.as_ref().is_some_and(|f| *f != self.cache_path) =>
            {
                self.forget_file();
                Some(now)
            }
            ImageFile::Absent | ImageFile::Broken => {
                self.forget_file();
                self.begin(self.cache_path.clone(), base_dir, now)?;
                Some(now)
            }
        })
    }

    /// It failed before anything of it was on the cluster: no path or script can be made for it.
    pub(super) fn not_plannable(
        mut self,
        why: &dyn std::fmt::Display,
        now: Timestamp,
    ) -> ConversionTransition {
        self.failed(format!("nothing can be submitted for it: {why}"), now);
        ConversionTransition { conversion: self, due_at: None }
    }

    /// Whether the file is as new as those who wait want it: its import began after they were accepted.
    fn is_fresh_enough(&self, demand: &Demand) -> bool {
        demand.fresh_since.is_none_or(|since| self.file_began_at.is_some_and(|began| began >= since))
    }

    fn forget_file(&mut self) {
        (self.file, self.file_seen_at, self.file_began_at) = (None, None, None);
    }

    /// A place beside the old file, whose name says when.
    fn fresh_target(&self, now: Timestamp) -> Result<RemotePath, InvalidName> {
        let path = self.cache_path.as_str();
        let stem = path.strip_suffix(".sqsh").unwrap_or(path);
        format!("{stem}.{}.sqsh", now.format("%Y%m%dT%H%M%S%3fZ")).parse()
    }

    /// The intent to convert, to be stored before anything remote happens.
    fn begin(
        &mut self,
        target: RemotePath,
        base_dir: &RemotePath,
        now: Timestamp,
    ) -> Result<(), InvalidName> {
        let no = self.run.as_ref().map_or(AttemptNo::FIRST, |run| run.no.next());
        let id = self.id.simple();
        self.run = Some(ConversionRun {
            no,
            token: token(self.id, no).parse()?,
            state_dir: base_dir.join(&format!("state/images/{id}/{no}"))?,
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
        self.message = format!("Converting the image {}: its job is being submitted.", self.image);
        Ok(())
    }

    fn ready(&mut self, file: RemotePath, began_at: Option<Timestamp>, now: Timestamp) {
        self.state = ConversionState::Ready;
        self.message = format!("The image is in the cache: {file}.");
        (self.file, self.file_seen_at, self.file_began_at) = (Some(file), Some(now), began_at);
        (self.failures, self.mishaps, self.retry_at, self.error, self.abandoned) = (0, 0, None, None, None);
    }

    /// The first failure is remembered for five minutes, each further one in a row for twice as long, at most an hour.
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
