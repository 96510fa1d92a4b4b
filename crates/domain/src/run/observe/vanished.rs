//! A job that squeue does not list any more.

use slurm::{SlurmState, timestamp};

use super::{finish, launches::state_of};
use crate::{
    clock::Timestamp,
    job::{
        status::Source,
        stored::{DesiredState, Job},
    },
    run::{
        evidence::{ENDED_BY_TERM, Observation, Records, exit_record},
        graces::Graces,
    },
};

/// Accounting decides how the job ended, or else its exit record. Without both the job counts as lost after a while.
pub(super) fn vanished(job: &mut Job, seen: &Observation<'_>, graces: &Graces, now: Timestamp) {
    let Some(attempt) = &mut job.attempt else { return };
    let exit = seen.markers.and_then(|markers| exit_record(markers, attempt.slurm_id));
    let ended = seen.accounting.filter(|row| row.state.is_final());
    if ended.is_some_and(|row| may_be_of_an_earlier_run(&row.state)) {
        // The job may be requeued, and squeue may have answered in the moment without it.
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
            attempt.started_at = attempt.started_at.or(timestamp(row.start));
            attempt.requeue_unexplained = false;
        }
        job.started_at = job.started_at.or(timestamp(row.start));
        finish(job, Source::Sacct, timestamp(row.end), now);
    } else if let Some(exit) = exit {
        // The last state that Slurm reported is not the one in which the job ended.
        attempt.slurm_state =
            state_by_record(exit.code, seen.records).filter(|_| job.desired == DesiredState::Run);
        finish(job, Source::Marker, timestamp(Some(exit.at)), now);
    } else if seen.records != Records::Unknown {
        // An accounting that is down proves nothing. One that lists the job as pending or running lags by seconds, or
        // forever if a controller was killed and has forgotten the job (sacctmgr(1), runaway jobs).
        let since = *job.missing_since.get_or_insert(now);
        if now - since >= graces.missing {
            attempt.slurm_state = None;
            finish(job, Source::Squeue, None, now);
        }
    }
}

/// The final state that Slurm has given a script with this exit code, as far as that is certain without accounting.
///
/// Slurm forgets each job some minutes after its end (`MinJobAge` in slurm.conf(5)). For a script that was ended from
/// outside the state is not certain. A failed one may be of a job that Slurm lost, which accounting reports once it is
/// back.
fn state_by_record(code: u8, records: Records) -> Option<SlurmState> {
    match (code, records) {
        (_, Records::Answered) => None,
        (0, _) => Some(SlurmState::Completed),
        (ENDED_BY_TERM, _) | (_, Records::Unknown) => None,
        (_, Records::Off) => Some(SlurmState::Failed),
    }
}

/// Whether Slurm requeues jobs that end like this: then the record may not be of the last run.
fn may_be_of_an_earlier_run(state: &SlurmState) -> bool {
    matches!(
        state,
        SlurmState::NodeFail | SlurmState::BootFail | SlurmState::LaunchFailed | SlurmState::Preempted
    )
}
