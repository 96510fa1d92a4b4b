//! The states that a caller sees: TAO's ten statuses, and our finer phases.

use serde::{Deserialize, Serialize};
use strum::{Display, EnumIter, EnumString, IntoStaticStr};
use utoipa::ToSchema;

/// TAO's job statuses, in TAO's spelling.
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
pub enum Status {
    Pending,
    /// A word of TAO that clients know and may filter by. No job of this service has it.
    Started,
    Running,
    Done,
    Error,
    Canceling,
    Canceled,
    Pausing,
    Paused,
    Resuming,
}

impl Status {
    /// Whether the job has ended: only its owner can change that.
    pub const fn is_final(self) -> bool {
        matches!(self, Self::Done | Self::Error | Self::Canceled)
    }
}

/// The stage of a job's life, finer than [`Status`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
#[derive(Display, EnumString, EnumIter, IntoStaticStr)]
#[strum(serialize_all = "snake_case")]
pub enum Phase {
    /// It waits for other jobs.
    Waiting,
    /// Stored; not submitted yet.
    Queued,
    ConvertingImage,
    /// The attempt is stored and its submission is in progress.
    Submitting,
    /// The submission may or may not have reached Slurm; the service looks for it.
    SubmitUncertain,
    /// Slurm has the job and has not started it.
    InQueue,
    Running,
    /// Slurm has suspended it; Slurm also resumes it.
    Suspended,
    /// Slurm reports the attempt finished; the service collects its exit code and logs.
    Finishing,
    /// The attempt failed because of the infrastructure; the next one starts after a wait.
    RetryWait,
    /// Its owner paused it: it is not in Slurm.
    Paused,
    Ended,
}

/// The source of the newest observation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema, Display, EnumString)]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
pub enum Source {
    Squeue,
    Sacct,
    /// The marker files that the batch script writes in the job's state directory.
    Marker,
    /// The database alone: the job is not on the cluster.
    Db,
}

#[cfg(test)]
mod tests {
    use strum::IntoEnumIterator;

    use super::*;

    #[test]
    fn every_word_reads_back_as_itself() {
        for status in Status::iter() {
            assert_eq!(status.to_string().parse::<Status>(), Ok(status));
            assert_eq!(serde_json::to_value(status).unwrap(), status.to_string());
        }
        for phase in Phase::iter() {
            assert_eq!(phase.to_string().parse::<Phase>(), Ok(phase));
            assert_eq!(serde_json::to_value(phase).unwrap(), phase.to_string());
        }
        for source in [Source::Squeue, Source::Sacct, Source::Marker, Source::Db] {
            assert_eq!(source.to_string().parse::<Source>(), Ok(source));
        }
    }
}
