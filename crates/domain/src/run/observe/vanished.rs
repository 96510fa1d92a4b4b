//! A run that squeue does not list any more.

use slurm::{AccountingRow, SlurmState, timestamp};

use super::{had_nodes, launches::state_of};
use crate::{
    clock::Timestamp,
    job::{run::Run, status::Source, stored::DesiredState},
    run::{
        evidence::{ENDED_BY_TERM, Observation, Records, exit_record},
        graces::Graces,
        task::Task,
    },
};

/// Accounting decides how the job ended, or else its exit record. Without both the run counts as lost after a while.
pub(super) fn vanished(
    run: &mut Run,
    task: &Task<'_>,
    seen: &Observation<'_>,
    graces: &Graces,
    now: Timestamp,
) {
    let exit = seen.markers.and_then(|markers| exit_record(markers, task.attempt.slurm_id));
    let mut ended = seen.accounting.filter(|row| row.state.is_final());
    if let Some(row) = ended.filter(|row| may_be_of_an_earlier_run(&row.state)) {
        // The job may be requeued, and squeue may have answered in the moment without it.
        let since = *run.missing_since.get_or_insert(now);
        if now - since < graces.missing {
            return;
        }
        if was_queued_again(run, row) {
            // A controller that was killed has forgotten the job after it had requeued it.
            ended = None;
        }
    }
    if let Some(row) = ended {
        run.state = Some(state_of(run, task, row, seen.markers));
        run.exit = row.exit_code.or(run.exit);
        run.reason = Some(row.reason.clone());
        run.nodes = (!row.nodes.is_empty()).then(|| row.nodes.clone()).or(run.nodes.take());
        run.started(timestamp(row.start).filter(|_| had_nodes(&row.nodes, seen)));
        run.finish(Source::Sacct, timestamp(row.end), now);
    } else if let Some(exit) = exit {
        // The last state that Slurm reported is not the one in which it ended.
        run.state = state_by_record(exit.code, seen.records).filter(|_| task.desired == DesiredState::Run);
        run.finish(Source::Marker, timestamp(Some(exit.at)), now);
    } else if seen.records != Records::Unknown {
        // An accounting that is down proves nothing. One that lists the job as pending or running lags by seconds, or
        // forever if a controller was killed and has forgotten the job (sacctmgr(1), runaway jobs).
        let since = *run.missing_since.get_or_insert(now);
        if now - since >= graces.missing {
            run.state = None;
            run.finish(Source::Squeue, None, now);
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

/// Whether the queue has shown the job after the end in this record: a requeue sets a new submit time. Both times are the cluster's, in
/// whole seconds.
fn was_queued_again(run: &Run, row: &AccountingRow) -> bool {
    run.queued_since.zip(row.end).is_some_and(|(since, end)| since.timestamp() >= end)
}

/// Whether Slurm requeues jobs that end like this: then the record may not be of the last run.
fn may_be_of_an_earlier_run(state: &SlurmState) -> bool {
    matches!(
        state,
        SlurmState::NodeFail | SlurmState::BootFail | SlurmState::LaunchFailed | SlurmState::Preempted
    )
}
