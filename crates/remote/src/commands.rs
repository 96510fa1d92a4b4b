//! What we ask of a cluster: one file per question, with the program that runs there under `programs/`.

mod cancel;
mod check_images;
mod checkpoints;
mod conclude;
mod exclude;
mod install_credentials;
mod locate;
pub(crate) mod markers;
mod node_health;
mod partitions;
mod parts;
mod poll;
mod preflight;
mod purge;
mod read_logs;
mod remove;
mod requeued;
pub(crate) mod status;
mod submit_batch;
mod test_only;

pub use cancel::{Cancel, Canceled};
pub use check_images::{CheckImages, ImageFile};
pub use checkpoints::Checkpoints;
pub use conclude::{Conclude, Concluded, Concluding};
pub use exclude::{Exclude, Excluded};
pub use install_credentials::InstallCredentials;
pub use locate::{Locate, LocateAnswer, Located, Sought};
pub use markers::{ExitRecord, Markers, RequeuedMarker, SelfCancelMarker, StartedMarker};
pub use node_health::{NodeHealth, NodeHealthAnswer};
pub use partitions::{Partitions, PartitionsAnswer};
pub use poll::{Poll, PollAnswer, SacctOutcome, SignsOfLife, SqueueOutcome, Watched};
pub use preflight::{Association, BaseDir, BaseState, DeepFacts, Preflight, PreflightAnswer, Said};
pub use purge::{Purge, Purged};
pub use read_logs::{LogAnswer, LogChunk, LogFrom, LogQuestion, ReadLogs};
pub use remove::{Remove, Removed, StagedSecret};
pub use requeued::{EarlierRun, Requeued};
pub use status::{RunNote, STATUS_FILES, STATUS_OVERLAP, StatusChunk, StatusCursor};
pub use submit_batch::{How, StagedFile, Submission, SubmitAnswer, SubmitBatch};
pub use test_only::{TestOnly, TestOnlyAnswer, TestVerdict};

/// Room for everything in an answer that does not depend on its size: stderr excerpts, framing.
const STDOUT_BASE: usize = 256 * 1024;

/// How many bytes so many bytes become in base64, with the line around them.
const fn encoded(bytes: usize) -> usize {
    bytes.saturating_add(bytes / 3).saturating_add(64)
}
