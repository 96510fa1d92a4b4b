//! The words a caller reads: TAO's ten statuses, and our finer phases.

use serde::{Deserialize, Serialize};
use strum::{Display, EnumIter, EnumString, IntoStaticStr};
use utoipa::ToSchema;

/// TAO's job statuses, spelled as TAO spells them.
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
    /// Never changes again by itself.
    pub const fn is_final(self) -> bool {
        matches!(self, Self::Done | Self::Error | Self::Canceled)
    }
}

/// Where in its life a job is, finer than [`Status`].
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
pub enum Phase {
    /// Stored; no attempt was made yet.
    Queued,
    CheckingInputs,
    ConvertingImage,
    Staging,
    /// The attempt is recorded and its submission is on its way.
    Submitting,
    /// The submission may or may not have reached Slurm; it is being looked for.
    SubmitUncertain,
    /// Slurm has the job and has not started it.
    InQueue,
    Running,
    /// Slurm has suspended it: it keeps its place, and goes on without a word from us.
    Suspended,
    /// Slurm is through with the attempt; its last words are being read.
    Finishing,
    /// The attempt failed for a reason that is not the job's; the next one begins after a while.
    RetryWait,
    /// At rest by its owner's wish: nothing of it is in Slurm.
    Paused,
    Ended,
}

/// What the newest observation rests on.
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
pub enum Source {
    Squeue,
    Sacct,
    /// The marker files that the batch script writes beside the job.
    Marker,
    /// Nothing on the cluster yet: what the database says is all there is.
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
        for source in Source::iter() {
            assert_eq!(source.to_string().parse::<Source>(), Ok(source));
        }
    }
}
