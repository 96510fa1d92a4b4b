//! What the evidence of an ended run proves, and whether more of it may follow.

use chrono::TimeDelta;
use remote::{
    Markers,
    script::{EXIT_BEGUN, EXIT_CLAIMED, EXIT_NO_MARKS, EXIT_NODE_FAILED, EXIT_NOT_NEEDED},
};
use slurm::{ExitCode, SlurmJobId, SlurmState, timestamp};

use super::Findings;
use crate::{
    clock::Timestamp,
    job::{
        run::Run,
        status::Phase,
        stored::{DesiredState, Job},
    },
    progress::{status_file::StatusWord, status_files::CLOCKS_AGREE},
    run::{
        evidence::{ENDED_BY_TERM, SIGTERM, exit_record, other_claim, start_marker},
        task::Task,
    },
};

/// From the signal for a job's end to that end there are `KillWait` seconds, 30 by default (slurm.conf(5)), and the two
/// times are of two clocks.
const KILL_WAIT: TimeDelta = TimeDelta::seconds(90);
/// Slurm ends a job as soon as scancel reaches it. A busy controller may delay that, and there are two clocks.
const CANCELED_AFTER: TimeDelta = TimeDelta::minutes(5);

/// Lets the exit record of a script that exited by itself override Slurm's state.
///
/// A killed controller may have forgotten the end of a job: it then cancels the job or fails to start it again. The exit
/// record proves more. A run removes the record of the run before it, so a record is always of the last run that began.
pub(super) fn trust_exit_record(run: &mut Run, task: &Task<'_>, markers: &Markers, now: Timestamp) {
    let (Some(exit), Some(started)) = (&markers.exit, &markers.started) else { return };
    let of_last_run = (exit.slurm_id, exit.restart) == (started.slurm_id, started.restart);
    let own = exit.code != ENDED_BY_TERM && task.attempt.slurm_id == Some(exit.slurm_id);
    if !own || !of_last_run || run.kill_reason.is_some() {
        return;
    }
    let before_its_end = run.ended_at.zip(timestamp(Some(exit.at))).map(|(ended, left)| ended - left);
    let is_overridden = match run.state {
        Some(SlurmState::Cancelled | SlurmState::LaunchFailed) => true,
        // It had finished when its nodes were lost, and the nodes could not report that.
        Some(SlurmState::NodeFail | SlurmState::BootFail | SlurmState::Preempted) => exit.code == 0,
        // Slurm forgot the end and let the time run out. An exit with 0 close to the limit is a reaction to the signal.
        Some(SlurmState::Timeout | SlurmState::Deadline) => {
            exit.code == 0 && before_its_end > Some(KILL_WAIT)
        }
        _ => false,
    };
    // A record with 0 that is older than the cancellation is no reaction to it: Slurm has put the job back since, or notes its end later
    // than two clocks can differ.
    let done_before = exit.code == 0 && (exit.restart < run.requeues || before_its_end > Some(CLOCKS_AGREE));
    let counts = match task.desired {
        DesiredState::Run => true,
        DesiredState::Cancel | DesiredState::Pause => done_before,
        DesiredState::Delete => false,
    };
    if counts && is_overridden {
        run.exit = Some(ExitCode { code: exit.code, signal: 0 });
        run.state = Some(if exit.code == 0 { SlurmState::Completed } else { SlurmState::Failed });
    }
    if exit.restart < run.requeues {
        run.started_at = timestamp(Some(started.at));
        run.ended_at = timestamp(Some(exit.at)).map(|ended| ended.min(now)).or(run.ended_at);
        run.resume(exit.restart);
    }
}

/// Whether a program of the job called scancel just before Slurm ended the job. A call hours before was for another job,
/// or was refused.
pub(super) fn canceled_itself(run: &Run, task: &Task<'_>, markers: &Markers) -> bool {
    let Some(marker) = markers.self_canceled else { return false };
    let times = timestamp(Some(marker.at)).zip(run.ended_at);
    task.attempt.slurm_id == Some(marker.slurm_id)
        && times.is_none_or(|(called, ended)| ended - called <= CANCELED_AFTER)
}

/// Another Slurm job that holds the attempt. Then ours has done nothing: it found the attempt claimed, or was ended before
/// it checked.
pub(super) fn first_copy(task: &Task<'_>, markers: &Markers) -> Option<SlurmJobId> {
    let ours = task.attempt.slurm_id?;
    other_claim(markers, Some(ours))
}

pub(super) fn adopt(job: &mut Job, first: SlurmJobId, now: Timestamp) {
    if let Some(attempt) = &mut job.attempt {
        attempt.slurm_id = Some(first);
    }
    // Polls write it again. What Slurm has told is of the other job: with its start, what this one has said would count as said before.
    let Run { task, status, progress, activity, kill_reason, ran_before, .. } = std::mem::take(&mut job.run);
    job.run = Run { task, status, progress, activity, kill_reason, ran_before, ..Run::default() };
    job.phase = Phase::InQueue;
    job.finishing_since = None;
    job.observed_at = Some(now);
    job.message = format!("Slurm had two copies of the submission; the running one is job {first}.");
}

/// The exit code: accounting's, else that of the exit record. squeue does not report exit codes.
///
/// For a repetition it is that of the run that was repeated. For a failed launch accounting reports 0, whatever ran
/// before.
pub(super) fn exit_code(run: &Run, task: &Task<'_>, markers: &Markers) -> Option<ExitCode> {
    let record = exit_record(markers, task.attempt.slurm_id);
    let recorded = record.map(|exit| ExitCode { code: exit.code, signal: 0 });
    match run.state {
        Some(SlurmState::LaunchFailed) => recorded,
        _ if is_a_repetition(run) => recorded.or(run.exit),
        _ => run.exit.or(recorded),
    }
}

/// Whether the attempt was queued ahead, and its script has found that there is nothing to do: then it has made no claim.
pub(super) fn was_not_needed(job: &Job, found: &Findings<'_>) -> bool {
    job.spec.restart.prequeue
        && found.readable
        && found.markers.run_claim.is_none()
        && ended_with(&job.run, EXIT_NOT_NEEDED)
}

/// Whether the script that ended found that its run had already begun: a killed controller had forgotten the job and
/// started it again. The first run may still go on, on another node, until Slurm notices it or it exits.
pub(super) fn is_a_repetition(run: &Run) -> bool {
    ended_with(run, EXIT_BEGUN)
}

/// Whether a run of the job may still go on although Slurm reports the job finished.
pub(super) fn may_still_run(run: &Run, task: &Task<'_>, markers: &Markers) -> bool {
    other_may_run(run, task, markers) || first_run_may_go_on(run, task, markers)
}

/// Whether the script that ended stopped because another run had begun, and that one's claim or end is not visible yet.
fn other_may_run(run: &Run, task: &Task<'_>, markers: &Markers) -> bool {
    let found_it_claimed = ended_with(run, EXIT_CLAIMED) && markers.run_claim.is_none();
    (is_a_repetition(run) || found_it_claimed) && !has_exit_record(task, markers)
}

/// Whether a run has begun and its end is not known: a killed controller forgot the job, and could not start it again.
fn first_run_may_go_on(run: &Run, task: &Task<'_>, markers: &Markers) -> bool {
    run.state == Some(SlurmState::LaunchFailed)
        && has_start_marker(task, markers)
        && !has_exit_record(task, markers)
}

pub(super) fn has_exit_record(task: &Task<'_>, markers: &Markers) -> bool {
    exit_record(markers, task.attempt.slurm_id).is_some()
}

fn has_start_marker(task: &Task<'_>, markers: &Markers) -> bool {
    start_marker(markers, task.attempt.slurm_id).is_some()
}

fn ended_with(run: &Run, code: u8) -> bool {
    run.exit == Some(ExitCode { code, signal: 0 })
}

/// Whether nothing of the run that Slurm ended was read. A requeued job may be ended before it begins or writes anything.
/// If no poll observed its wait, the lines of the run before look like its own.
pub(super) fn was_never_read(run: &Run, task: &Task<'_>, markers: &Markers) -> bool {
    let marker = start_marker(markers, task.attempt.slurm_id);
    if marker.is_some_and(|marker| run.status.were_read_before(marker.restart)) {
        return true;
    }
    let began_at = marker.and_then(|marker| timestamp(Some(marker.at)));
    // The final status was read before the run started. The node's clock alone may be minutes slow.
    let was_written_before = |started_at: Timestamp| {
        began_at.is_some_and(|began_at| began_at < started_at - CLOCKS_AGREE)
            && run.progress.final_status_at.is_none_or(|read_at| read_at < started_at + CLOCKS_AGREE)
    };
    // Only a run that was ended from outside may not have begun.
    matches!(run.state, Some(SlurmState::Cancelled | SlurmState::Timeout))
        && run.started_at.is_none_or(was_written_before)
}

/// Several processes of a job may each write a status file. One that failed has made the job fail.
pub(super) fn failure_overrides_success(run: &mut Run) {
    let progress = &mut run.progress;
    if progress.final_status() == Some(StatusWord::Success)
        && let Some(message) = run.status.failure().map(str::to_owned)
    {
        progress.word = Some(StatusWord::Failure.to_string());
        progress.message = Some(message).filter(|message| !message.is_empty());
        progress.failure.clone_from(&progress.message);
    }
}

/// Whether expected evidence is not visible yet: a shared file system shows a file late.
pub(super) fn is_incomplete(
    run: &Run,
    task: &Task<'_>,
    exit: Option<ExitCode>,
    found: &Findings<'_>,
) -> bool {
    let has_exit_record = has_exit_record(task, found.markers);
    // A killed script leaves no exit record.
    let awaits_record = match run.state {
        // The script writes the record last: while that is late, a FAILURE may be late too.
        Some(SlurmState::Completed) => !has_exit_record,
        Some(SlurmState::Failed) => {
            exit.is_none_or(depends_on_record) && !has_exit_record || other_may_run(run, task, found.markers)
        }
        // Only the record tells what the job had done before Slurm could not start it again.
        Some(SlurmState::LaunchFailed) => first_run_may_go_on(run, task, found.markers),
        _ => false,
    };
    let unread = found.status.iter().any(|chunk| !chunk.complete);
    !found.readable || unread || awaits_record || awaits_final_status(run, task, found)
}

/// Whether the meaning of this exit depends on the exit record: our script returns these codes without a record, and a
/// program may return them too.
const fn depends_on_record(exit: ExitCode) -> bool {
    matches!(
        exit,
        ExitCode { code: EXIT_NO_MARKS | EXIT_NODE_FAILED, signal: 0 }
            | ExitCode { code: 0, signal: SIGTERM }
    )
}

/// Whether the job's final status would decide and may still become visible: the job was ended from outside, and left no
/// exit record.
fn awaits_final_status(run: &Run, task: &Task<'_>, found: &Findings<'_>) -> bool {
    let decides = match (&run.state, task.desired) {
        (Some(SlurmState::Timeout), DesiredState::Run | DesiredState::Pause)
        | (Some(SlurmState::Cancelled), DesiredState::Run) => true,
        // A paused job is resumed, and a canceled one stays canceled, whatever it had reported.
        _ => false,
    };
    // A controller that forgot a run may end the job as a pending one. The start marker proves that it began.
    let began = run.started_at.is_some() || has_start_marker(task, found.markers);
    // What the run before had said is not its own.
    let said = run.progress.is_final() && !was_never_read(run, task, found.markers);
    decides && began && !has_exit_record(task, found.markers) && !said
}
