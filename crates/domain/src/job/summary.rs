//! The summary of a job: its phase, status, progress and message follow from the newest run of each task.

use crate::{
    clock::Timestamp,
    job::{
        run::Run,
        status::{Phase, Status},
        stored::{DesiredState, Job},
    },
    progress::status_file::StatusWord,
    run::pending::pending_message,
};

/// What a run says of its job.
#[derive(Debug, PartialEq, Eq)]
struct Summary {
    phase: Phase,
    /// `None` leaves the status as it is: a poll has not seen the run, or the conclusion decides.
    status: Option<Status>,
    message: Option<String>,
    pending_reason: Option<String>,
}

impl Summary {
    fn of(run: &Run) -> Self {
        let phase = run.phase();
        let waits = run.state.as_ref().filter(|_| phase == Phase::InQueue);
        let reason = run.reason.as_deref().unwrap_or_default();
        let (status, message) = if let Some(state) = waits {
            (Some(Status::Pending), Some(pending_message(state, reason)))
        } else if phase == Phase::Running {
            (Some(Status::Running), Some(running_message(run)))
        } else if phase == Phase::Suspended {
            let message = "Slurm has suspended the job and may resume it later.";
            (Some(Status::Paused), Some(message.to_owned()))
        } else {
            (None, None)
        };
        Self { phase, status, message, pending_reason: run.reason.clone().filter(|_| waits.is_some()) }
    }
}

/// A number without digits that say nothing.
fn short(number: f64) -> String {
    if number.fract() == 0.0 { number.to_string() } else { format!("{number:.2}") }
}

fn running_message(run: &Run) -> String {
    if let Some(why) = &run.kill_reason {
        return format!("{why} Ending the job.");
    }
    let (progress, nodes) = (&run.progress, run.nodes.as_deref().unwrap_or_default());
    match (progress.final_status(), progress.epoch, progress.max_epoch) {
        (Some(StatusWord::Success | StatusWord::Failure), ..) => {
            "The job has reported its final status; waiting for it to exit.".to_owned()
        }
        _ if !progress.waiting.is_empty() => {
            format!("Running on {nodes}. {}.", progress.waiting.join("; "))
        }
        (_, Some(epoch), Some(of)) => format!("Epoch {epoch} of {of} on {nodes}."),
        _ => match progress.done.zip(progress.total) {
            Some((done, total)) => format!("{} of {} on {nodes}.", short(done), short(total)),
            None => format!("Running on {nodes}."),
        },
    }
}

impl Job {
    /// Takes over what its run says, after a poll.
    pub(crate) fn summarize(&mut self, now: Timestamp) {
        let Summary { phase, status, message, pending_reason } = Summary::of(&self.run);
        // A desired cancellation or pause stays visible until the job has ended.
        let is_wanted = self.desired == DesiredState::Run;
        let status = status.map(|status| match self.desired {
            DesiredState::Cancel | DesiredState::Delete => Status::Canceling,
            DesiredState::Pause => Status::Pausing,
            DesiredState::Run => status,
        });
        self.phase = phase;
        self.status = status.unwrap_or(self.status);
        self.message = message.filter(|_| is_wanted).unwrap_or_else(|| std::mem::take(&mut self.message));
        self.pending_reason = pending_reason;
        self.source = self.run.source.unwrap_or(self.source);
        self.started_at = self.started_at.or(self.run.started_at);
        if phase == Phase::Finishing {
            "Slurm reports the job finished; collecting its exit code and logs."
                .clone_into(&mut self.message);
            self.finishing_since = Some(now);
        }
    }
}
