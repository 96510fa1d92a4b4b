//! Reading new status lines into a run.

use remote::StatusChunk;

use crate::{
    clock::Timestamp,
    job::{paths::JobPaths, run::Run},
    progress::{
        status_files::{Reading, StatusFiles},
        summary::Progress,
    },
    run::task::Task,
};

/// Takes in the new bytes of the status files, and moves the cursors past the complete lines. `over`: the files are no
/// longer written.
pub(crate) fn absorb_status(
    run: &mut Run,
    task: &Task<'_>,
    chunks: &[StatusChunk],
    over: bool,
    now: Timestamp,
) {
    read_status(run, task, chunks, over, now, |files, chunk, progress, reading| {
        files.take(chunk, progress, reading);
    });
}

/// Takes in last lines without a newline.
pub(crate) fn absorb_rest(run: &mut Run, task: &Task<'_>, chunks: &[StatusChunk], now: Timestamp) {
    read_status(run, task, chunks, true, now, |files, chunk, progress, reading| {
        files.take_rest(chunk, progress, reading);
    });
}

/// Whether it is not known yet which execution has written some of the lines.
pub(crate) fn is_held_back(run: &Run, task: &Task<'_>, chunks: &[StatusChunk], now: Timestamp) -> bool {
    let mut held_back = false;
    read_status(&mut run.clone(), task, chunks, false, now, |files, chunk, progress, reading| {
        held_back |= files.is_held_back(chunk, progress.run, reading);
    });
    held_back
}

fn read_status(
    run: &mut Run,
    task: &Task<'_>,
    chunks: &[StatusChunk],
    over: bool,
    now: Timestamp,
    mut read: impl FnMut(&mut StatusFiles, &StatusChunk, &mut Progress, Reading<'_>),
) {
    if let Some(restart) = unseen_run(run, chunks) {
        run.begin_again();
        run.requeues = run.requeues.saturating_add(1).max(restart);
    }
    let paths = JobPaths::new(&task.attempt.job_dir, task.job);
    let results = paths.as_ref().map_or("", |paths| paths.results.as_str());
    let reading = Reading { results, started_at: run.started_at, requeues: run.requeues, over, now };
    let mut chunks: Vec<&StatusChunk> = chunks.iter().collect();
    chunks.sort_by_key(|chunk| chunk.written_at);
    for chunk in chunks {
        read(&mut run.status, chunk, &mut run.progress, reading);
    }
}

/// The restart count of a run whose start no poll observed: Slurm requeued the job between two polls, or while polls
/// failed.
fn unseen_run(run: &Run, chunks: &[StatusChunk]) -> Option<u32> {
    chunks.iter().find_map(|chunk| run.status.unseen_run(chunk, run.requeues))
}
