//! The question of a poll: each active job, and each conversion.

use domain::{ActiveJob, Conversion, JobPaths, OUR_NAMES, Timestamp, wants_signs_of_life};
use persistence::ActiveArray;
use remote::{Poll, Watched};

use crate::poll::tick::arrays;

/// The most bytes of one status file, and of all, that one poll reads.
const STATUS_BYTES_PER_FILE: usize = 1024 * 1024;
const STATUS_BYTES_TOTAL: usize = 8 * 1024 * 1024;

/// `last` is the time of the last answered poll.
pub(super) fn question(
    jobs: &[ActiveJob],
    arrays: &[ActiveArray],
    conversions: &[Conversion],
    last: Option<Timestamp>,
    now: Timestamp,
) -> Poll {
    let watched = |job: &ActiveJob| {
        let attempt = &job.attempt;
        let (base, id) = (&attempt.job_dir, job.id);
        let logs = || JobPaths::new(base, id).ok()?.documented_logs(attempt).ok()?;
        Some(Watched {
            id: attempt.slurm_id?,
            key: attempt.key(id),
            results_dir: Some(JobPaths::results_of(base, id).ok()?),
            state_dir: JobPaths::state_below(base, id, attempt.no).ok()?,
            status: job.cursors.clone(),
            signs_of_life: if wants_signs_of_life(job, last, now) { logs() } else { None },
            index: None,
        })
    };
    let (tasks, arrays) = arrays::watched(arrays, last, now);
    let others = conversions.iter().filter_map(watched_run);
    Poll {
        jobs: jobs.iter().filter_map(watched).chain(others).chain(tasks).collect(),
        arrays,
        status_bytes_per_file: STATUS_BYTES_PER_FILE,
        status_bytes_total: STATUS_BYTES_TOTAL,
        others: OUR_NAMES.parse().ok(),
    }
}

/// A conversion is polled like a job.
fn watched_run(conversion: &Conversion) -> Option<Watched> {
    let run = conversion.run.as_ref()?;
    Some(Watched {
        id: run.slurm_id?,
        key: run.key(conversion.id),
        results_dir: None,
        state_dir: run.state_dir.clone(),
        status: Vec::new(),
        signs_of_life: None,
        index: None,
    })
}
