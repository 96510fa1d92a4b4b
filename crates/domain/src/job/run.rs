//! A run: what Slurm has of one task in one attempt.
//!
//! A run has one writer at a time. Polls write it until one of them sees its end and sets [`Run::is_over`]. From then on
//! only the step that concludes it writes it, under the lease of its job. The store checks both.

use serde::{Deserialize, Serialize};
use slurm::{ExitCode, SlurmState, Stage};

use crate::{
    clock::Timestamp,
    job::{
        failure::Failure,
        results::TaskResult,
        status::{Phase, Source},
    },
    progress::{status_files::StatusFiles, summary::Progress, usage::Usage},
};

/// One task in one attempt. A run that no poll has seen is the default value, and takes no row in the database.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Run {
    /// The task's number: its index in Slurm's job array. A job without an array has one task, number 0.
    pub task: u32,
    /// Slurm's state; absent before a poll has seen it, and for a run that Slurm has lost.
    pub state: Option<SlurmState>,
    pub exit: Option<ExitCode>,
    /// The nodes in Slurm's own compressed notation, such as `node[01-03]`.
    pub nodes: Option<String>,
    pub reason: Option<String>,
    pub partition: Option<String>,
    /// The read positions in its status files, carried over from the attempts before.
    pub status: StatusFiles,
    pub progress: Progress,
    /// The newest sign of activity, if the job has an activity timeout.
    pub activity: Option<Activity>,
    /// What it uses, as its batch script measures it.
    pub usage: Option<Usage>,
    /// Why the service ends it, in a sentence.
    pub kill_reason: Option<String>,
    /// When it last entered Slurm's queue, by Slurm's clock. A requeue sets it anew.
    pub queued_since: Option<Timestamp>,
    /// When Slurm expects to start it, if it is pending and Slurm has an estimate.
    pub estimated_start: Option<Timestamp>,
    pub started_at: Option<Timestamp>,
    pub ended_at: Option<Timestamp>,
    /// Since when neither the queue nor accounting lists it, without interruption.
    pub missing_since: Option<Timestamp>,
    /// How often Slurm has requeued it after it had started: its restart count.
    pub requeues: u32,
    /// How long its task ran in the attempts before this one, since its owner last retried it, in seconds by Slurm's clock.
    pub ran_before: u32,
    /// Slurm has requeued it, and has not started it again.
    pub waits_again: bool,
    /// What its state comes from; absent before a poll has seen it.
    pub source: Option<Source>,
    /// Slurm reports it finished.
    pub is_over: bool,
    /// Why it failed; `None` before it is concluded, and if it did not fail.
    pub failure: Option<Failure>,
    /// Its results, after the step that concluded it; `None` in a run that was read from the store.
    pub results: Option<Vec<TaskResult>>,
}

impl Run {
    /// The run of the same task in the next attempt. It reads the status files on from where this one ended; `progress` is
    /// what is known until then.
    pub(crate) fn next_attempt(&self, progress: &Progress) -> Self {
        let mut next = Self {
            task: self.task,
            status: self.status.inherited(),
            progress: progress.clone(),
            ran_before: self.used_seconds(),
            ..Self::default()
        };
        next.progress.begin_attempt();
        next
    }

    /// Starts over after a requeue. What is known of the execution before does not apply to the next.
    pub fn begin_again(&mut self) {
        self.status.begin_run(&self.progress, self.requeues);
        self.progress.begin_run();
        self.activity = None;
        self.usage = None;
        self.kill_reason = None;
    }

    /// Returns to the execution after this many requeues: those that were assumed to follow it never began.
    pub(crate) fn resume(&mut self, requeues: u32) {
        self.requeues = requeues;
        if let Some(before) = self.status.resume_run(requeues) {
            self.progress.resume_run(before);
        }
    }

    /// How long its task has run with this attempt.
    pub(crate) fn used_seconds(&self) -> u32 {
        self.ran_before.saturating_add(self.elapsed())
    }

    /// How long it ran, in seconds. A job that counts this is not requeued by Slurm.
    pub(crate) fn elapsed(&self) -> u32 {
        let time = self.started_at.zip(self.ended_at).map_or(0, |(from, until)| (until - from).num_seconds());
        u32::try_from(time.max(0)).unwrap_or(u32::MAX)
    }

    /// Its owner retries the task: the time until now does not count.
    pub fn forget_time(&mut self) {
        (self.ran_before, self.started_at) = (0, None);
    }

    /// The phase of a job with this run.
    pub fn phase(&self) -> Phase {
        if self.is_over {
            return Phase::Finishing;
        }
        match self.state.as_ref().map(SlurmState::stage) {
            Some(Stage::Running) => Phase::Running,
            Some(Stage::Suspended) => Phase::Suspended,
            Some(Stage::Waiting | Stage::Final | Stage::Unclear) | None => Phase::InQueue,
        }
    }

    /// Records that Slurm reports it finished.
    pub(crate) fn finish(&mut self, source: Source, ended_at: Option<Timestamp>, now: Timestamp) {
        self.is_over = true;
        self.source = Some(source);
        self.estimated_start = None;
        // The clock of a node may be ahead of ours; no run ends in the future.
        self.ended_at = ended_at.map(|at| at.min(now)).or(self.ended_at);
    }

    /// Records that it runs, since `start`.
    pub(crate) fn started(&mut self, start: Option<Timestamp>) {
        self.waits_again = false;
        self.started_at = self.started_at.or(start);
    }
}

/// The newest sign of activity of a run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Activity {
    /// The totals of all that it has written.
    pub(crate) signs: Signs,
    /// When these totals were first seen.
    pub(crate) since: Timestamp,
    /// How long the cluster had been unreachable by then, in total, in milliseconds.
    pub(crate) unreachable_ms: i64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Signs {
    pub(crate) files: u64,
    pub(crate) bytes: u64,
    pub(crate) newest: i64,
}
