//! How a job ended: the one place that says Done, Error or Canceled of a job that ran.

mod last_words;
mod sentences;

use chrono::TimeDelta;
use remote::{
    Markers, StatusChunk,
    script::{EXIT_NO_MARKS, EXIT_NODE_FAILED},
};
use slurm::{ExitCode, SlurmJobId, SlurmState};

use crate::{
    clock::Timestamp,
    job::{
        status::{Phase, Status},
        stored::{DesiredState, Job},
    },
    progress::{status_file::StatusWord, status_files::CLOCKS_AGREE},
    request::spec::Work,
    run::{
        diagnosis::{ENDED_BY_TERM, SIGTERM, SickNode},
        observe::{Graces, absorb_rest, absorb_status, at, is_held_back},
        settle::settle,
    },
};

use last_words::{is_catching_up, last_words_are_out};
use sentences::{failed_message, said_failure, silent, with_log};

/// What was found beside a job that Slurm is through with.
#[derive(Debug, Clone, Copy)]
pub struct Findings<'a> {
    /// Whether the job's files could be looked at: if not, that they say nothing means nothing.
    pub readable: bool,
    /// Whether it has a status file that cannot be told of, because of its name or its numbers.
    pub left_out: bool,
    pub markers: &'a Markers,
    pub status: &'a [StatusChunk],
    pub out_tail: &'a [u8],
    pub err_tail: &'a [u8],
    /// The ends of the logs of its roles, if it has any.
    pub role_tails: &'a [u8],
    /// Those of its nodes that Slurm does not trust now.
    pub sick: &'a [SickNode],
    /// How many nodes it can do without, if that is known.
    pub spare: Option<usize>,
}

/// Whether the truth is known yet.
#[derive(Debug, Clone)]
pub enum Ending {
    Ended(Job),
    /// Its owner has paused it: it is at rest.
    Paused(Job),
    /// It failed, and not by its own fault: it is sent again.
    Again {
        job: Job,
        due_at: Timestamp,
    },
    /// Ours was a second copy and did nothing; the first runs under this id.
    Adopt(Job),
    /// A last word may still be on its way through the shared file system.
    Wait {
        job: Job,
        until: Timestamp,
    },
}

/// The verdict on a job that Slurm is through with.
pub fn conclude(job: &Job, found: &Findings<'_>, graces: &Graces, now: Timestamp) -> Ending {
    let mut job = job.clone();
    // A file server that does not answer takes longer than a word that is late.
    let grace = match found.readable {
        false => graces.finish.max(CATCH_UP),
        true if another_is_at_it(&job, found.markers) || may_be_at_it(&job, found.markers) => {
            graces.finish.max(NOTICED)
        }
        true => graces.finish,
    };
    let until = job.finishing_since.unwrap_or(now) + grace;
    ended_by_itself(&mut job, found.markers, now);
    let held_back = is_held_back(&job, found.status, now);
    absorb_status(&mut job, found.status, now >= until, now);
    let exit = exit_code(&job, found.markers);
    if let Some(first) = first_copy(&job, found.markers) {
        adopt(&mut job, first, now);
        return Ending::Adopt(job);
    }
    if is_catching_up(&job, found, now) {
        return Ending::Wait { job, until: now };
    }
    if now < until && (held_back || last_words_are_out(&job, exit, found)) {
        return Ending::Wait { job, until };
    }
    let read = job.clone();
    absorb_rest(&mut job, found.status, now);
    if was_never_read(&job, found.markers) {
        job.begin_run();
    }
    a_failure_outweighs_a_success(&mut job);
    let repeated = is_a_repetition(&job);
    let canceled_itself = canceled_itself(&job, found.markers);
    // It was ended by us, by itself, or because it had failed and hung.
    let wanted_its_end = job.kill_reason.is_some()
        || canceled_itself
        || job.progress.final_status() == Some(StatusWord::Failure);
    if let Some(attempt) = &mut job.attempt {
        // Slurm's word is of the repetition alone: what ended the run which it repeated is a controller that had forgotten it.
        if repeated && !wanted_its_end && exit.is_some_and(|exit| exit.code == ENDED_BY_TERM) {
            attempt.slurm_state = None;
        }
        attempt.exit = exit;
        attempt.ended_at = attempt.ended_at.or(Some(now));
    }
    let state = job.attempt.as_ref().and_then(|attempt| attempt.slurm_state.clone());
    let failed = exit.is_some_and(|exit| exit.code != 0 || exit.signal != 0);
    // Without a word from Slurm, the exit marker that the script left is the next best witness. A controller that was killed
    // may say that it could not start what has run to its end, or that it failed, since its repetition did.
    let completed = match &state {
        Some(SlurmState::LaunchFailed) | None => exit.is_some(),
        Some(SlurmState::Failed) => is_marked(&job, found.markers) && !failed,
        Some(state) => *state == SlurmState::Completed,
    };

    let (status, message) = if completed && !failed {
        match (job.progress.final_status(), &job.spec.work) {
            (Some(StatusWord::Success), _) => (Status::Done, "Done.".to_owned()),
            (Some(StatusWord::Failure), _) => (Status::Error, said_failure(&job)),
            (Some(StatusWord::Started | StatusWord::Running) | None, Work::Command { .. }) => {
                (Status::Done, "Done: the command exited with code 0.".to_owned())
            }
            (Some(StatusWord::Started | StatusWord::Running) | None, Work::Tao { .. }) => {
                if now < until {
                    // The line without its newline may still get the rest of it.
                    return Ending::Wait { job: read, until };
                }
                (Status::Error, silent(&job, found))
            }
        }
    } else {
        unhappy_end(&job, state.as_ref(), exit, canceled_itself, found)
    };
    settle(job, status, message, found, graces, now)
}

/// Slurm may give up what has come to its end, or start it again, in vain: a controller that was killed has forgotten that. The
/// mark of a script that nobody ended says more, and so does what was written until then. A run that begins removes the mark
/// of the one before it, so where there is one, it is of the last that began.
fn ended_by_itself(job: &mut Job, markers: &Markers, now: Timestamp) {
    let is_wanted = job.desired == DesiredState::Run;
    let Some(attempt) = &mut job.attempt else { return };
    let (Some(exit), Some(started)) = (&markers.exit, &markers.started) else { return };
    let of_last_run = (exit.slurm_id, exit.restart) == (started.slurm_id, started.restart);
    let own = exit.code != ENDED_BY_TERM && attempt.slurm_id == Some(exit.slurm_id);
    if !own || !of_last_run || job.kill_reason.is_some() {
        return;
    }
    let is_overruled = match attempt.slurm_state {
        Some(SlurmState::Cancelled | SlurmState::LaunchFailed) => true,
        // It was through when its nodes were lost; without them nobody could tell Slurm.
        Some(SlurmState::NodeFail | SlurmState::BootFail | SlurmState::Preempted) => exit.code == 0,
        // Slurm was told, has forgotten, and let its time run out. What ends with 0 at that time does so because it was told to.
        Some(SlurmState::Timeout | SlurmState::Deadline) => {
            exit.code == 0
                && attempt
                    .ended_at
                    .zip(at(Some(exit.at)))
                    .is_some_and(|(ended, left)| ended - left > TOLD_TO_END)
        }
        _ => false,
    };
    if is_wanted && is_overruled {
        let code = ExitCode { code: exit.code, signal: 0 };
        attempt.exit = Some(code);
        attempt.slurm_state = Some(if code.code == 0 { SlurmState::Completed } else { SlurmState::Failed });
    }
    if exit.restart < attempt.requeues {
        attempt.started_at = at(Some(started.at));
        attempt.ended_at = at(Some(exit.at)).map(|ended| ended.min(now)).or(attempt.ended_at);
        job.resume_run(exit.restart);
    }
}

/// From the signal for a job's end to that end there are `KillWait` seconds, 30 by default (slurm.conf(5)), and two clocks.
const TOLD_TO_END: TimeDelta = TimeDelta::seconds(90);

/// Whether a program of the job called scancel just before Slurm ended it. What it called it for hours ago were other jobs, or it was
/// refused: then somebody else ended this one.
fn canceled_itself(job: &Job, markers: &Markers) -> bool {
    let (Some(attempt), Some(mark)) = (&job.attempt, markers.self_canceled) else { return false };
    let asked_and_ended = at(Some(mark.at)).zip(attempt.ended_at);
    attempt.slurm_id == Some(mark.slurm_id)
        && asked_and_ended.is_none_or(|(asked, ended)| ended - asked <= CANCELLED_AFTER)
}

/// Slurm ends a job as soon as scancel reaches it, which a busy controller may put off, and there are two clocks.
const CANCELLED_AFTER: TimeDelta = TimeDelta::minutes(5);

/// Whether the script has left its exit marker.
fn is_marked(job: &Job, markers: &Markers) -> bool {
    let ours = job.attempt.as_ref().and_then(|attempt| attempt.slurm_id);
    markers.exit.is_some_and(|exit| Some(exit.slurm_id) == ours)
}

/// Whether the script has left the mark with which it begins.
fn has_marked_its_start(job: &Job, markers: &Markers) -> bool {
    let ours = job.attempt.as_ref().and_then(|attempt| attempt.slurm_id);
    markers.started.as_ref().is_some_and(|started| Some(started.slurm_id) == ours)
}

/// How long files are waited for that cannot be read, or are read that are far behind, before the verdict.
const CATCH_UP: TimeDelta = TimeDelta::minutes(10);

/// After so long Slurm has noticed what runs on a node without its knowledge, or that the node does not answer: the default of
/// `SlurmdTimeout` (slurm.conf(5)).
pub(crate) const NOTICED: TimeDelta = TimeDelta::minutes(5);

/// Whether nothing of the run that Slurm ended was read. One that waits in the queue again may be ended before it begins, or
/// before it says anything, and if nobody has seen it wait, what the run before it has said looks like its own.
fn was_never_read(job: &Job, markers: &Markers) -> bool {
    let Some(attempt) = &job.attempt else { return false };
    let marked = markers.started.as_ref().filter(|marker| Some(marker.slurm_id) == attempt.slurm_id);
    if marked.is_some_and(|marker| attempt.status.were_read_before(marker.restart)) {
        return true;
    }
    let began_at = marked.and_then(|marker| at(Some(marker.at)));
    // Its last word was read before it was started. The clock of its node alone may be minutes slow.
    let was_said_before = |started_at: Timestamp| {
        began_at.is_some_and(|began_at| began_at < started_at - CLOCKS_AGREE)
            && job.progress.final_status_at.is_none_or(|read_at| read_at < started_at + CLOCKS_AGREE)
    };
    // Only what is ended from outside may not have begun.
    matches!(attempt.slurm_state, Some(SlurmState::Cancelled | SlurmState::Timeout))
        && attempt.started_at.is_none_or(was_said_before)
}

/// Several processes of a job may each have a status file of their own: one that failed has made the job fail.
fn a_failure_outweighs_a_success(job: &mut Job) {
    let failure = job.attempt.as_ref().and_then(|attempt| attempt.status.failure());
    if job.progress.final_status() == Some(StatusWord::Success)
        && let Some(message) = failure.map(str::to_owned)
    {
        job.progress.word = Some(StatusWord::Failure.to_string());
        job.progress.message = Some(message).filter(|message| !message.is_empty());
    }
}

/// Another Slurm job that holds the attempt. Then ours has done nothing, whether it found the attempt taken or was ended
/// before it could look.
fn first_copy(job: &Job, markers: &Markers) -> Option<SlurmJobId> {
    let ours = job.attempt.as_ref()?.slurm_id?;
    markers.run_claim.filter(|first| *first != ours)
}

fn adopt(job: &mut Job, first: SlurmJobId, now: Timestamp) {
    if let Some(attempt) = &mut job.attempt {
        attempt.slurm_id = Some(first);
        attempt.slurm_state = None;
        attempt.exit = None;
        attempt.ended_at = None;
    }
    job.phase = Phase::InQueue;
    job.finishing_since = None;
    job.observed_at = Some(now);
    job.message = format!("Slurm had two copies of the submission; the one that runs is job {first}.");
}

/// Accounting's word, else the script's own; Slurm's `squeue` does not show exit codes. Of a repetition, that of the run which it
/// repeated. Of what could not be started accounting says 0, whatever it has run before.
fn exit_code(job: &Job, markers: &Markers) -> Option<ExitCode> {
    let attempt = job.attempt.as_ref()?;
    let marked = markers.exit.as_ref().filter(|exit| Some(exit.slurm_id) == attempt.slurm_id);
    let marked = marked.map(|exit| ExitCode { code: exit.code, signal: 0 });
    match attempt.slurm_state {
        Some(SlurmState::LaunchFailed) => marked,
        _ if is_a_repetition(job) => marked.or(attempt.exit),
        _ => attempt.exit.or(marked),
    }
}

/// Whether the script that has ended found its run begun before. A controller that was killed has forgotten that, and whoever
/// began may still be at it, on another node, until Slurm notices him or he leaves his mark.
fn is_a_repetition(job: &Job) -> bool {
    ended_with(job, remote::script::EXIT_BEGUN)
}

/// Whether the script that has ended stopped because somebody else had begun, and nobody knows yet who, or what became of him: a
/// claim that kept a second copy from running is seen on the login host later than on the node.
fn another_is_at_it(job: &Job, markers: &Markers) -> bool {
    let found_it_taken = ended_with(job, remote::script::EXIT_CLAIMED) && markers.run_claim.is_none();
    (is_a_repetition(job) || found_it_taken) && !is_marked(job, markers)
}

/// Whether a run of it has begun, of which nobody knows that it has ended: a controller that was killed has forgotten it, and could
/// not start another.
fn may_be_at_it(job: &Job, markers: &Markers) -> bool {
    let state = job.attempt.as_ref().and_then(|attempt| attempt.slurm_state.as_ref());
    state == Some(&SlurmState::LaunchFailed) && has_marked_its_start(job, markers) && !is_marked(job, markers)
}

/// Whether it depends on the mark of the end what this says: a script that leaves none returns it, or a program.
const fn needs_its_mark(exit: ExitCode) -> bool {
    matches!(
        exit,
        ExitCode { code: EXIT_NO_MARKS | EXIT_NODE_FAILED, signal: 0 }
            | ExitCode { code: 0, signal: SIGTERM }
    )
}

fn ended_with(job: &Job, code: u8) -> bool {
    let exit = job.attempt.as_ref().and_then(|attempt| attempt.exit);
    exit == Some(ExitCode { code, signal: 0 })
}

fn unhappy_end(
    job: &Job,
    state: Option<&SlurmState>,
    exit: Option<ExitCode>,
    canceled_itself: bool,
    found: &Findings<'_>,
) -> (Status, String) {
    let reason = job.attempt.as_ref().and_then(|attempt| attempt.reason.as_deref()).unwrap_or("None");
    let canceled = || match job.desired {
        DesiredState::Cancel | DesiredState::Delete | DesiredState::Pause => "Canceled.".to_owned(),
        DesiredState::Run => "Canceled on the cluster by somebody else.".to_owned(),
    };
    // The job had said how it ended before it was ended from outside: by us, to free its nodes, by its limit, or by a controller
    // that has forgotten it.
    let said = match job.desired {
        DesiredState::Run | DesiredState::Pause => job.progress.final_status(),
        DesiredState::Cancel | DesiredState::Delete => None,
    };
    match (state, said) {
        (Some(SlurmState::Cancelled | SlurmState::Timeout), Some(StatusWord::Success)) => {
            return (Status::Done, "Done: it had reported success before it was ended.".to_owned());
        }
        (None, Some(StatusWord::Success)) if exit.is_none_or(|exit| exit.code == ENDED_BY_TERM) => {
            return (Status::Done, "Done: it had reported success before Slurm lost it.".to_owned());
        }
        (Some(SlurmState::Cancelled | SlurmState::Timeout), Some(StatusWord::Failure)) => {
            return (Status::Error, said_failure(job));
        }
        _ => {}
    }
    if found.markers.limited && exit.is_some_and(|exit| exit.code == remote::script::EXIT_LIMIT) {
        return (Status::Error, with_log("The job reached its own time limit and did not go on.", found));
    }
    match state {
        Some(SlurmState::Cancelled | SlurmState::Revoked) => match &job.kill_reason {
            Some(why) if job.desired == DesiredState::Run => (Status::Error, with_log(why, found)),
            None if canceled_itself && job.desired == DesiredState::Run => {
                (Status::Error, with_log("The job canceled itself.", found))
            }
            _ => (Status::Canceled, canceled()),
        },
        // It would have been canceled if Slurm had started it, as what is paused is, too.
        Some(SlurmState::LaunchFailed)
            if job.desired != DesiredState::Run && exit.is_none_or(|exit| exit.code == ENDED_BY_TERM) =>
        {
            (Status::Canceled, canceled())
        }
        Some(SlurmState::Preempted) => (
            Status::Canceled,
            "A job of higher priority took the nodes, and Slurm did not requeue this one.".to_owned(),
        ),
        Some(SlurmState::Timeout) => {
            (Status::Error, "The job hit its time limit and was ended by Slurm.".to_owned())
        }
        Some(SlurmState::OutOfMemory) => {
            let text = "The job used more memory than it had asked for and was ended by Slurm.";
            (Status::Error, with_log(text, found))
        }
        Some(SlurmState::Deadline) => (Status::Error, "Slurm could not meet the job's deadline.".to_owned()),
        Some(state) => (Status::Error, with_log(&failed_message(state, exit, reason), found)),
        None if exit.is_some() && job.desired == DesiredState::Run => {
            (Status::Error, with_log(&failed_message(&SlurmState::Failed, exit, reason), found))
        }
        None => match job.desired {
            DesiredState::Cancel | DesiredState::Delete | DesiredState::Pause => {
                (Status::Canceled, "Canceled: Slurm does not know the job any more.".to_owned())
            }
            DesiredState::Run => (
                Status::Error,
                "Slurm's queue and accounting have lost the job, and it left no exit marker.".to_owned(),
            ),
        },
    }
}

#[cfg(test)]
mod tests;
