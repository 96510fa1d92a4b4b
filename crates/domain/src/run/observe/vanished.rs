//! A job that squeue does not know any more.

use slurm::SlurmState;

use super::{Graces, Observation, Records, at, finish, launches::state_of};
use crate::{
    clock::Timestamp,
    job::{
        status::Source,
        stored::{DesiredState, Job},
    },
    run::diagnosis::ENDED_BY_TERM,
};

/// Accounting says how it ended, else its own exit marker, else
/// nobody, and then only time can tell.
pub(super) fn vanished(job: &mut Job, seen: &Observation<'_>, graces: &Graces, now: Timestamp) {
    let id = job.attempt.as_ref().and_then(|attempt| attempt.slurm_id);
    let exit = seen.markers.and_then(|m| m.exit.as_ref()).filter(|exit| Some(exit.slurm_id) == id);
    let ended = seen.accounting.filter(|row| row.state.is_final());
    if ended.is_some_and(|row| may_be_an_earlier_runs(&row.state)) {
        // It waits in the queue, for all that accounting knows, and the queue was shown without it.
        let since = *job.missing_since.get_or_insert(now);
        if now - since < graces.missing {
            return;
        }
    }
    if let Some(row) = ended {
        let state = state_of(job, row, seen.markers);
        if let Some(attempt) = &mut job.attempt {
            attempt.slurm_state = Some(state);
            attempt.exit = row.exit_code.or(attempt.exit);
            attempt.reason = Some(row.reason.clone());
            attempt.nodes = (!row.nodes.is_empty()).then(|| row.nodes.clone()).or(attempt.nodes.take());
            attempt.started_at = attempt.started_at.or(at(row.start));
            attempt.requeue_unexplained = false;
        }
        job.started_at = job.started_at.or(at(row.start));
        finish(job, Source::Sacct, at(row.end), now);
    } else if let Some(exit) = exit {
        forget_state(job);
        if job.desired == DesiredState::Run
            && let Some(state) = state_by_mark(exit.code, seen.records)
            && let Some(attempt) = &mut job.attempt
        {
            attempt.slurm_state = Some(state);
        }
        finish(job, Source::Marker, at(Some(exit.at)), now);
    } else if seen.records != Records::Unknown {
        // Accounting that is down proves nothing. One that has the job wait, or run, is behind for seconds; what a controller
        // was killed over and has forgotten it calls so for ever (sacctmgr(1), runaway jobs).
        let since = *job.missing_since.get_or_insert(now);
        if now - since >= graces.missing {
            forget_state(job);
            finish(job, Source::Squeue, None, now);
        }
    }
}

/// What Slurm has said of a script that ended so, as far as anybody knows without accounting: it forgets each job some minutes
/// after its end (`MinJobAge` of slurm.conf(5)). Of what was ended from outside that does not follow; and what failed may have been a
/// job that Slurm has lost, as accounting would tell that is only away.
fn state_by_mark(code: u8, records: Records) -> Option<SlurmState> {
    match (code, records) {
        (_, Records::Answered) => None,
        (0, _) => Some(SlurmState::Completed),
        (ENDED_BY_TERM, _) | (_, Records::Unknown) => None,
        (_, Records::Off) => Some(SlurmState::Failed),
    }
}

/// Whether Slurm puts jobs that end so back into its queue: then accounting has the end of a run that was not the last.
fn may_be_an_earlier_runs(state: &SlurmState) -> bool {
    matches!(
        state,
        SlurmState::NodeFail | SlurmState::BootFail | SlurmState::LaunchFailed | SlurmState::Preempted
    )
}

/// The last state that Slurm told is not the one in which the job ended.
fn forget_state(job: &mut Job) {
    if let Some(attempt) = &mut job.attempt {
        attempt.slurm_state = None;
    }
}
