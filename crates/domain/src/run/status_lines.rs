//! Reading new status lines into a job.

use remote::StatusChunk;

use crate::{
    clock::Timestamp,
    job::{paths::JobPaths, stored::Job},
    progress::{
        status_files::{Reading, StatusFiles},
        summary::Progress,
    },
};

/// Takes in the new bytes of the status files, and moves the cursors past the complete lines. `over`: the files are no
/// longer written.
pub(crate) fn absorb_status(job: &mut Job, chunks: &[StatusChunk], over: bool, now: Timestamp) {
    read_status(job, chunks, over, now, |files, chunk, progress, reading| {
        files.take(chunk, progress, reading);
    });
}

/// Takes in last lines without a newline.
pub(crate) fn absorb_rest(job: &mut Job, chunks: &[StatusChunk], now: Timestamp) {
    read_status(job, chunks, true, now, |files, chunk, progress, reading| {
        files.take_rest(chunk, progress, reading);
    });
}

/// Whether it is not known yet which run of the job has written some of the lines.
pub(crate) fn is_held_back(job: &Job, chunks: &[StatusChunk], now: Timestamp) -> bool {
    let mut held_back = false;
    read_status(&mut job.clone(), chunks, false, now, |files, chunk, progress, reading| {
        held_back |= files.is_held_back(chunk, progress.run, reading);
    });
    held_back
}

fn read_status(
    job: &mut Job,
    chunks: &[StatusChunk],
    over: bool,
    now: Timestamp,
    mut read: impl FnMut(&mut StatusFiles, &StatusChunk, &mut Progress, Reading<'_>),
) {
    if let Some(restart) = unseen_run(job, chunks) {
        job.begin_run();
        if let Some(attempt) = &mut job.attempt {
            attempt.requeues = attempt.requeues.saturating_add(1).max(restart);
        }
    }
    let Some(attempt) = &mut job.attempt else { return };
    let paths = JobPaths::new(&attempt.job_dir, job.id);
    let results = paths.as_ref().map_or("", |paths| paths.results.as_str());
    let reading = Reading { results, started_at: attempt.started_at, requeues: attempt.requeues, over, now };
    let mut chunks: Vec<&StatusChunk> = chunks.iter().collect();
    chunks.sort_by_key(|chunk| chunk.written_at);
    for chunk in chunks {
        read(&mut attempt.status, chunk, &mut job.progress, reading);
    }
}

/// The restart count of a run whose start no poll observed: Slurm requeued the job between two polls, or while polls
/// failed.
fn unseen_run(job: &Job, chunks: &[StatusChunk]) -> Option<u32> {
    let attempt = job.attempt.as_ref()?;
    chunks.iter().find_map(|chunk| attempt.status.unseen_run(chunk, attempt.requeues))
}
