//! The question of a poll: each active job.

use domain::{ActiveJob, JobPaths, OUR_NAMES, Timestamp, comes_round, wants_signs_of_life};
use persistence::ActiveArray;
use remote::{Poll, Watched};

use crate::poll::tick::arrays;

/// The most bytes of one status file, and of all, that one poll reads.
const STATUS_BYTES_PER_FILE: usize = 1024 * 1024;
const STATUS_BYTES_TOTAL: usize = 8 * 1024 * 1024;

/// `last` is the time of the last answered poll. `usage_seconds`: how often jobs measure what they use; 0: never.
pub(super) fn question(
    jobs: &[ActiveJob],
    arrays: &[ActiveArray],
    usage_seconds: u32,
    last: Option<Timestamp>,
    now: Timestamp,
) -> Poll {
    // They tell it once a minute, at first more often.
    let measures = usage_seconds > 0 && comes_round(i64::from(usage_seconds * 6).min(60), last, now);
    let watched = |job: &ActiveJob| {
        let attempt = &job.attempt;
        let (base, id) = (&attempt.job_dir, job.id);
        let logs = || JobPaths::new(base, id).ok()?.documented_logs(attempt).ok()?;
        let results_dir = JobPaths::results_of(base, id).ok()?;
        Some(Watched {
            id: attempt.slurm_id?,
            key: attempt.key(id),
            reports: job.reporting.files(&results_dir, measures),
            results_dir,
            state_dir: JobPaths::state_below(base, id, attempt.no).ok()?,
            status: job.cursors.clone(),
            signs_of_life: if wants_signs_of_life(job, last, now) { logs() } else { None },
            index: None,
        })
    };
    let (tasks, arrays) = arrays::watched(arrays, measures, last, now);
    Poll {
        jobs: jobs.iter().filter_map(watched).chain(tasks).collect(),
        arrays,
        status_bytes_per_file: STATUS_BYTES_PER_FILE,
        status_bytes_total: STATUS_BYTES_TOTAL,
        others: OUR_NAMES.parse().ok(),
    }
}
