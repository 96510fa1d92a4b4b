//! A job with an array: which of its tasks wait for a submission, and how many are in which state.
//!
//! An attempt carries a piece of the array, at most as many tasks as Slurm's `MaxArraySize` allows, or the tasks of a retry. So
//! several attempts are in Slurm at once. One of them is submitted at a time: the job's newest.

use serde::{Deserialize, Serialize};
use slurm::TaskSet;

use crate::{
    clock::Timestamp,
    job::{attempt::Attempt, failure::Failure, run::Run},
    request::spec::JobSpec,
};

/// What a job with an array keeps beside its newest attempt.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct ArrayState {
    /// The tasks that wait for a submission.
    pub unsubmitted: TaskSet,
    /// The tasks that wait for tasks of other jobs.
    #[serde(default)]
    pub held: TaskSet,
    /// The tasks that were canceled because of a job, or a task, that they need. They go on if that is retried.
    #[serde(default)]
    pub skipped: TaskSet,
    /// Those of `unsubmitted` wait until then, after a failure of the infrastructure.
    pub not_before: Option<Timestamp>,
    /// The tasks that were canceled before a submission.
    pub dropped: TaskSet,
    /// The newest attempt when the owner last retried the job: failures before it do not count against the retry budget.
    pub retried_at: u32,
    /// The cancellation of its tasks that was sent last.
    #[serde(default)]
    pub told: Option<Told>,
    /// Why nothing more is submitted: Slurm has rejected an attempt.
    pub refusal: Option<String>,
    /// As of the last step.
    pub counts: TaskCounts,
    /// The tasks that the owner has canceled, whatever their states. Kept by the owner's requests, not by steps.
    #[serde(skip)]
    pub withdrawn: TaskSet,
    /// The attempts in Slurm before the newest one.
    #[serde(skip)]
    pub earlier: Vec<Attempt>,
    /// Why the first of its tasks failed whose newest run did, while the job's status is `Error`. Kept with that run.
    #[serde(skip)]
    pub failure: Option<Failure>,
}

/// A cancellation that Slurm has accepted.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Told {
    pub at: Timestamp,
    pub tasks: TaskSet,
}

/// How many tasks of a job are in which state.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct TaskCounts {
    /// All tasks.
    pub total: u32,
    /// Those that wait.
    pub pending: u32,
    /// Those that run.
    pub running: u32,
    /// Those that succeeded.
    pub done: u32,
    /// Those that failed.
    pub error: u32,
    /// Those that were canceled.
    pub canceled: u32,
}

impl TaskCounts {
    pub const fn ended(&self) -> u32 {
        self.done + self.error + self.canceled
    }

    /// The tasks that wait fail with their job: nothing more is submitted.
    pub(crate) const fn fail_pending(&mut self) {
        self.error += self.pending;
        self.pending = 0;
    }
}

/// The state of a task.
#[derive(
    Debug,
    Clone,
    Copy,
    PartialEq,
    Eq,
    Serialize,
    strum::EnumIter,
    strum::EnumString,
    strum::IntoStaticStr,
    utoipa::ToSchema,
)]
#[strum(serialize_all = "snake_case")]
#[serde(rename_all = "snake_case")]
pub enum TaskStatus {
    Pending,
    Running,
    Done,
    Error,
    Canceled,
}

/// What the newest run of a task says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NewestRun {
    /// It has begun and has not ended.
    pub is_running: bool,
    pub outcome: Option<TaskOutcome>,
    /// Another attempt carries the task, or will.
    pub is_superseded: bool,
}

impl NewestRun {
    pub fn of(run: &Run, outcome: Option<TaskOutcome>, is_superseded: bool) -> Self {
        let is_running = outcome.is_none() && run.started_at.is_some() && !run.waits_again;
        Self { is_running, outcome, is_superseded }
    }
}

/// What the runs of one attempt say.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct AttemptTally {
    /// The runs that have begun and are not concluded.
    pub running: u32,
    /// The runs that are concluded, whatever became of their tasks.
    pub concluded: u32,
    /// The runs that decided about their tasks.
    pub done: u32,
    pub error: u32,
    pub canceled: u32,
}

/// How a task ended in a run.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, Serialize, strum::Display, strum::EnumString, strum::IntoStaticStr,
)]
#[strum(serialize_all = "snake_case")]
#[serde(rename_all = "snake_case")]
pub enum TaskOutcome {
    Done,
    Error,
    Canceled,
    /// Another attempt carries the task.
    Retried,
}

impl AttemptTally {
    /// Counts a run that was just concluded.
    pub const fn conclude(&mut self, outcome: TaskOutcome, had_begun: bool) {
        self.concluded += 1;
        if had_begun {
            self.running = self.running.saturating_sub(1);
        }
        match outcome {
            TaskOutcome::Done => self.done += 1,
            TaskOutcome::Error => self.error += 1,
            TaskOutcome::Canceled => self.canceled += 1,
            TaskOutcome::Retried => {}
        }
    }
}

impl ArrayState {
    /// The state of a job that was just accepted; `None` without an array.
    pub fn of(spec: &JobSpec) -> Option<Self> {
        let tasks = spec.array.as_ref()?.tasks();
        let total = tasks.len();
        let counts = TaskCounts { total, pending: total, ..TaskCounts::default() };
        let waiting = Self { counts, ..Self::default() };
        Some(if spec.awaits_tasks() {
            Self { held: tasks, ..waiting }
        } else {
            Self { unsubmitted: tasks, ..waiting }
        })
    }

    /// The tasks that are not in Slurm and may get there.
    pub fn open(&self) -> TaskSet {
        self.unsubmitted.union(&self.held).union(&self.skipped)
    }

    /// Whether some tasks wait for other jobs, or were canceled because of them.
    pub fn follows_others(&self) -> bool {
        !self.held.is_empty() || !self.skipped.is_empty()
    }

    /// Of the tasks that wait for other jobs, `free` may run, and `lost` never can as things are.
    pub fn release(&mut self, free: &TaskSet, lost: &TaskSet) {
        let open = self.held.union(&self.skipped);
        self.skipped = open.intersection(lost);
        let free = open.intersection(free).without(lost);
        self.held = open.without(&free).without(lost);
        self.unsubmitted = self.unsubmitted.union(&free);
    }

    /// All tasks that wait are canceled because of a job that theirs needs.
    pub(crate) fn skip(&mut self) {
        self.skipped = self.open();
        (self.unsubmitted, self.held) = Default::default();
    }

    /// How many tasks are in Slurm, or on the way there.
    pub(crate) fn submitted(&self) -> u32 {
        let not_there = self.unsubmitted.len() + self.held.len() + self.counts.ended();
        self.counts.total.saturating_sub(not_there)
    }

    /// The first piece of the tasks that wait, and the task that Slurm's index 0 stands for. `size`: of a piece.
    pub(crate) fn next_piece(&self, size: u32) -> Option<(u32, TaskSet)> {
        self.unsubmitted.pieces(size).into_iter().next()
    }
}
