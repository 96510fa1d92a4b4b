//! What is noted of the remote commands that are run for a job: which, and how it went. Never what was in them.

use serde::{Deserialize, Serialize};
use strum::{Display, EnumIter, EnumString, IntoStaticStr};
use utoipa::ToSchema;

/// Which remote command.
#[derive(
    Debug,
    Clone,
    Copy,
    PartialEq,
    Eq,
    Hash,
    Serialize,
    Deserialize,
    ToSchema,
    Display,
    EnumString,
    EnumIter,
    IntoStaticStr,
)]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
pub enum CommandClass {
    /// Looks for the inputs, stages the files and runs sbatch.
    Submit,
    /// Looks for a submission whose answer was lost.
    Locate,
    /// Asks for the state and reads the new status lines of all jobs that Slurm has of us; one command for them all.
    Poll,
    /// Reads the last words of a job that has ended and removes its files with secrets.
    Conclude,
    /// Runs scancel.
    Cancel,
    /// Looks for the newest checkpoint.
    Checkpoints,
    /// Asks why Slurm has put the job back into its queue.
    Requeued,
    /// Changes the nodes that the waiting job is kept away from.
    Exclude,
    /// Removes files with secrets of a job that was never submitted.
    Remove,
    /// Removes what a deleted job has left.
    Purge,
    /// Reads a part of a log for somebody.
    ReadLogs,
    /// Looks for the job's image in the cache.
    CheckImages,
    /// Submits the conversion of the job's image.
    ConversionSubmit,
    /// Looks for that submission.
    ConversionLocate,
    /// Reads how the conversion ended.
    ConversionConclude,
    /// Cancels the conversion.
    ConversionCancel,
    /// Asks which nodes are ill. For no one job, and so in no timeline.
    NodeHealth,
    /// Asks for the partitions. The same.
    Partitions,
}

impl CommandClass {
    /// What it is called when it was for a conversion that the job waits for.
    #[must_use]
    pub const fn for_conversion(self) -> Self {
        match self {
            Self::Submit => Self::ConversionSubmit,
            Self::Locate => Self::ConversionLocate,
            Self::Conclude => Self::ConversionConclude,
            Self::Cancel => Self::ConversionCancel,
            Self::Poll
            | Self::Checkpoints
            | Self::Requeued
            | Self::Exclude
            | Self::Remove
            | Self::Purge
            | Self::ReadLogs
            | Self::CheckImages
            | Self::ConversionSubmit
            | Self::ConversionLocate
            | Self::ConversionConclude
            | Self::ConversionCancel
            | Self::NodeHealth
            | Self::Partitions => self,
        }
    }
}

/// How a remote command went.
#[derive(
    Debug,
    Clone,
    Copy,
    PartialEq,
    Eq,
    Hash,
    Serialize,
    Deserialize,
    ToSchema,
    Display,
    EnumString,
    EnumIter,
    IntoStaticStr,
)]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
pub enum CommandResult {
    /// It was answered, and the answer was understood.
    Ok,
    /// It was surely not sent: no login host let it in, or no session was free.
    NotSent,
    /// The same, because no login host accepts a key of ours.
    AuthRequired,
    /// Its answer was lost: nobody knows whether it had an effect.
    Lost,
    /// It says that it surely had no effect, and may be tried again.
    NotDone,
    /// It may have had its effect: its answer was cut off or not understood.
    Ambiguous,
    /// It would fail again.
    Permanent,
    /// There is no room for it at present.
    Capacity,
    /// Slurm or the site is broken.
    Infra,
}

impl From<slurm::FailureClass> for CommandResult {
    fn from(class: slurm::FailureClass) -> Self {
        match class {
            slurm::FailureClass::NotDone => Self::NotDone,
            slurm::FailureClass::Ambiguous => Self::Ambiguous,
            slurm::FailureClass::Permanent => Self::Permanent,
            slurm::FailureClass::Capacity => Self::Capacity,
            slurm::FailureClass::Infra => Self::Infra,
        }
    }
}
