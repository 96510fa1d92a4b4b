//! Whether a observation was news.

use crate::job::stored::Job;

/// Whether anything that is stored or shown has changed.
pub(super) fn differs(old: &Job, new: &Job) -> bool {
    let face = |job: &Job| {
        (
            job.status,
            job.phase,
            job.message.clone(),
            job.pending_reason.clone(),
            job.source,
            job.missing_since,
            job.activity.clone(),
            job.kill_reason.clone(),
        )
    };
    let attempt = |job: &Job| {
        job.attempt.as_ref().map(|a| {
            (
                a.slurm_state.clone(),
                a.exit,
                a.nodes.clone(),
                a.reason.clone(),
                (a.queued_since, a.estimated_start),
                a.started_at,
                a.ended_at,
                a.requeues,
                a.status.clone(),
            )
        })
    };
    face(old) != face(new) || attempt(old) != attempt(new) || old.progress != new.progress
}
