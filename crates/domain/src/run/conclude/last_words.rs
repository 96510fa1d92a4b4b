//! What is waited for before the verdict, because it may be on its way.

use slurm::{ExitCode, SlurmState};

use super::{
    CATCH_UP, Findings, another_is_at_it, has_marked_its_start, is_marked, may_be_at_it, needs_its_mark,
};
use crate::{
    clock::Timestamp,
    job::stored::{DesiredState, Job},
    progress::status_file::StatusWord,
};

/// Whether something that must be there cannot be seen yet: a shared file system shows a file late.
pub(super) fn last_words_are_out(job: &Job, exit: Option<ExitCode>, found: &Findings<'_>) -> bool {
    // Whoever is killed leaves no mark of its end.
    let marker_is_out = match job.attempt.as_ref().and_then(|attempt| attempt.slurm_state.as_ref()) {
        // The marker comes after all that the job has to say: where it is late, a FAILURE may be, too.
        Some(SlurmState::Completed) => !is_marked(job, found.markers),
        Some(SlurmState::Failed) => {
            exit.is_none_or(needs_its_mark) && !is_marked(job, found.markers)
                || another_is_at_it(job, found.markers)
        }
        // What it had done before it could not be started again is known by its mark alone.
        Some(SlurmState::LaunchFailed) => may_be_at_it(job, found.markers),
        _ => false,
    };
    let unread = found.status.iter().any(|chunk| !chunk.complete);
    !found.readable || unread || marker_is_out || may_have_said_how(job, found)
}

/// Whether the job's own last word would decide and may be on its way: it was ended from outside, and no mark that it left
/// after that word is there.
fn may_have_said_how(job: &Job, found: &Findings<'_>) -> bool {
    let Some(attempt) = &job.attempt else { return false };
    let ended = matches!(attempt.slurm_state, Some(SlurmState::Timeout | SlurmState::Cancelled));
    let marked = is_marked(job, found.markers);
    let has_said = matches!(job.progress.final_status(), Some(StatusWord::Success | StatusWord::Failure));
    // A controller that has forgotten a start may end the job as one that waits: its own mark says that it began.
    let began = attempt.started_at.is_some() || has_marked_its_start(job, found.markers);
    job.desired == DesiredState::Run && ended && began && !marked && !has_said
}

/// Whether more of a status file is there than one answer holds: the last word is at its end.
pub(super) fn is_catching_up(job: &Job, found: &Findings<'_>, now: Timestamp) -> bool {
    let more = found.status.iter().any(|chunk| !chunk.complete && !chunk.bytes.is_empty());
    more && job.finishing_since.is_some_and(|since| now - since < CATCH_UP)
}
