//! A job with an array: its submissions piece by piece, and its state by the counts of its tasks.

use std::{fmt::Write, num::NonZeroU32};

use slurm::TaskSet;

use crate::{
    clock::Timestamp,
    job::{
        array::{ArrayState, AttemptTally, NewestRun, TaskCounts, TaskOutcome, TaskStatus},
        attempt::{Attempt, Outcome, Verdict},
        identity::AttemptNo,
        status::{Phase, Status},
        stored::{DesiredState, Job},
    },
    run::plan::Transition,
};

impl Job {
    /// Whether the next submission needs a new attempt.
    pub fn needs_attempt(&self) -> bool {
        let open = self.attempt.as_ref().filter(|attempt| attempt.is_open());
        open.is_none_or(|attempt| self.array.is_some() && attempt.slurm_id.is_some())
    }

    /// The attempts in Slurm that have not ended.
    pub fn attempts_in_slurm(&self) -> impl Iterator<Item = &Attempt> {
        let earlier = self.array.iter().flat_map(|array| &array.earlier);
        earlier.chain(&self.attempt).filter(|attempt| attempt.is_open() && attempt.slurm_id.is_some())
    }

    /// Gives a new attempt the tasks that it carries.
    pub fn assign_tasks(&mut self, attempt: &mut Attempt, max_array_size: u32) {
        let room = self.room();
        let Some(array) = &mut self.array else { return };
        let size = self.spec.array.as_ref().map_or(1, |array| array.piece_size(max_array_size)).min(room);
        let Some((base, tasks)) = array.next_piece(size) else { return };
        array.unsubmitted = array.unsubmitted.without(&tasks);
        (attempt.base, attempt.tasks) = (base, tasks);
        array
            .earlier
            .extend(self.attempt.clone().filter(|known| known.is_open() && known.slurm_id.is_some()));
    }

    /// A task waits for another attempt.
    pub fn await_task(&mut self, task: u32, until: Option<Timestamp>) {
        let Some(array) = &mut self.array else { return };
        array.unsubmitted.insert(task);
        array.not_before = array.not_before.max(until);
        if until.is_some() {
            self.retry_count += 1;
        }
    }

    /// The state of a task. `newest`: its newest run, if it has one.
    pub fn task_status(&self, task: u32, newest: Option<&NewestRun>) -> TaskStatus {
        let Some(array) = &self.array else {
            return match self.status {
                Status::Done => TaskStatus::Done,
                Status::Error => TaskStatus::Error,
                Status::Canceled => TaskStatus::Canceled,
                _ if self.phase == Phase::Running => TaskStatus::Running,
                Status::Pending
                | Status::Started
                | Status::Running
                | Status::Canceling
                | Status::Pausing
                | Status::Paused
                | Status::Resuming => TaskStatus::Pending,
            };
        };
        match newest.filter(|run| !run.is_superseded).map(|run| (run.outcome, run.is_running)) {
            Some((Some(TaskOutcome::Done), _)) => TaskStatus::Done,
            Some((Some(TaskOutcome::Error), _)) => TaskStatus::Error,
            Some((Some(TaskOutcome::Canceled), _)) => TaskStatus::Canceled,
            Some((None, true)) => TaskStatus::Running,
            _ if array.dropped.contains(task) || array.skipped.contains(task) => TaskStatus::Canceled,
            _ if self.phase == Phase::Ended && self.status == Status::Canceled => TaskStatus::Canceled,
            // Slurm has rejected its submission.
            _ if self.phase == Phase::Ended => TaskStatus::Error,
            _ => TaskStatus::Pending,
        }
    }

    /// The state of its array when its owner retries these tasks. None of them is done. `failed`: those of them that failed.
    pub fn retried_array(&self, tasks: &TaskSet, failed: &TaskSet) -> Option<ArrayState> {
        let known = self.array.as_ref()?;
        let (failed, all) = (tasks.intersection(failed).len(), tasks.len());
        // What a canceled job never submitted is canceled, and stays so if it does not go now.
        let is_canceled = self.status == Status::Canceled;
        let waited = known.unsubmitted.union(&known.held);
        let mut canceled = if is_canceled { waited } else { TaskSet::default() };
        let (mut held, mut skipped) = (TaskSet::default(), TaskSet::default());
        if self.spec.awaits_tasks() {
            // A task that was submitted before does not wait again.
            held = tasks.intersection(&known.open().union(&known.dropped));
            skipped = known.skipped.without(tasks);
        } else {
            canceled = canceled.union(&known.skipped);
        }
        let counts = TaskCounts {
            pending: all,
            error: known.counts.error.saturating_sub(failed),
            canceled: known.counts.canceled.saturating_sub(all - failed),
            ..known.counts
        };
        Some(ArrayState {
            unsubmitted: tasks.without(&held),
            held,
            skipped,
            dropped: known.dropped.union(&canceled).without(tasks),
            withdrawn: known.withdrawn.without(tasks),
            retried_at: self.attempt.as_ref().map_or(0, |attempt| attempt.no.get()),
            counts,
            ..ArrayState::default()
        })
    }

    /// How many tasks may be submitted now. Tasks that wait for tasks of other jobs go in many small attempts, which cannot share the limit
    /// of the array.
    fn room(&self) -> u32 {
        let (Some(array), Some(limit)) = (&self.array, self.most_at_once()) else { return u32::MAX };
        if !self.spec.awaits_tasks() || self.attempts_in_slurm().next().is_none() {
            return u32::MAX;
        }
        limit.saturating_sub(array.submitted())
    }

    fn most_at_once(&self) -> Option<u32> {
        self.spec.array.as_ref()?.max_parallel.map(NonZeroU32::get)
    }

    /// How many of the attempt's tasks run at once: the pieces of an array share its limit.
    pub fn max_parallel(&self, attempt: &Attempt) -> Option<u32> {
        let array = self.spec.array.as_ref()?;
        let limit = self.most_at_once()?;
        if self.spec.awaits_tasks() {
            return Some(limit);
        }
        let limit = u64::from(limit);
        let total = u64::from(array.tasks().len().max(1));
        let share = (limit * u64::from(attempt.tasks.len())).div_ceil(total);
        Some(u32::try_from(share.max(1)).unwrap_or(u32::MAX))
    }

    /// Whether tasks wait for a submission that may happen now.
    pub(crate) fn may_submit_tasks(&self, array: &ArrayState, now: Timestamp) -> bool {
        let awaits =
            self.attempt.as_ref().is_some_and(|attempt| attempt.is_open() && attempt.slurm_id.is_none());
        let waits = !array.unsubmitted.is_empty() && self.room() > 0;
        let is_ready = array.not_before.is_none_or(|at| at <= now);
        let is_withdrawn = !array.unsubmitted.intersection(&array.withdrawn).is_empty();
        array.refusal.is_none() && !is_withdrawn && is_ready && (awaits || waits)
    }

    /// The tasks of a job whose submission Slurm has just answered: another piece may follow at once.
    #[must_use]
    pub(crate) fn after_piece(mut self, due_at: Option<Timestamp>, now: Timestamp) -> Transition {
        let in_slurm = self.attempts_in_slurm().next().is_some();
        let Some(array) = &mut self.array else { return Transition { job: self, due_at } };
        let unsent = self.attempt.as_ref().filter(|attempt| !attempt.is_open() && attempt.slurm_id.is_none());
        if let (Some(attempt), Status::Canceled | Status::Paused) = (unsent, self.status) {
            // The attempt never reached Slurm. Its tasks, and those of the others, are counted in the next step.
            let tasks = &attempt.tasks;
            if self.status == Status::Canceled {
                array.dropped = array.dropped.union(tasks);
                self.status = Status::Canceling;
            } else {
                array.unsubmitted = array.unsubmitted.union(tasks);
                self.status = Status::Pausing;
            }
            (self.phase, self.finished_at) = (Phase::InQueue, None);
            return Transition { job: self, due_at: Some(now) };
        }
        if self.phase == Phase::Ended {
            // Slurm has rejected one of several attempts: the others go on.
            let had_more = array.counts.ended() > 0 || in_slurm;
            if self.status == Status::Error && had_more {
                array.refusal = Some(self.message.clone());
                self.finished_at = None;
                self.phase = Phase::InQueue;
                self.status = Status::Running;
                return Transition { job: self, due_at: Some(now) };
            }
            array.counts.fail_pending();
            return Transition { job: self, due_at };
        }
        let is_put_off = matches!(self.phase, Phase::Queued | Phase::Submitting | Phase::RetryWait);
        if let Some(at) = due_at.filter(|at| is_put_off && *at > now) {
            // Meanwhile the tasks in Slurm are tended.
            array.not_before = array.not_before.max(Some(at));
        }
        if self.phase == Phase::InQueue {
            let more = !array.unsubmitted.is_empty();
            if more && array.not_before.is_none_or(|at| at <= now) {
                self.phase = Phase::Queued;
            }
            return Transition { job: self, due_at: Some(now) };
        }
        Transition { job: self, due_at }
    }

    /// The job after a step that concluded runs. `tallies` are those of all its attempts.
    pub fn tally(&self, tallies: &[(AttemptNo, AttemptTally)], now: Timestamp) -> Transition {
        let mut job = self.clone();
        job.recount(tallies, now);
        job.settle(now)
    }

    /// Counts its tasks, after it has withdrawn those that its owner has canceled. `tallies` are those of all its attempts.
    pub(crate) fn recount(&mut self, tallies: &[(AttemptNo, AttemptTally)], now: Timestamp) {
        let Some(mut array) = self.array.take() else { return };
        self.withdraw(&mut array, now);
        let concluded = |attempt: &Attempt| {
            let tally = tallies.iter().find(|(no, _)| *no == attempt.no);
            tally.is_some_and(|(_, tally)| tally.concluded >= attempt.tasks.len())
        };
        for attempt in array.earlier.iter_mut().chain(&mut self.attempt) {
            if attempt.is_open() && attempt.slurm_id.is_some() && concluded(attempt) {
                let tally = tallies.iter().find(|(no, _)| *no == attempt.no).map(|(_, tally)| *tally);
                attempt.verdict = Some(verdict(&tally.unwrap_or_default(), attempt.tasks.len(), now));
            }
        }
        array.counts = counts(&array, tallies);
        self.array = Some(array);
    }

    /// Nothing more is submitted of a job that its owner cancels or pauses, or of tasks that the owner cancels.
    fn withdraw(&mut self, array: &mut ArrayState, now: Timestamp) {
        array.dropped = array.dropped.union(&array.open().intersection(&array.withdrawn));
        for waiting in [&mut array.unsubmitted, &mut array.held, &mut array.skipped] {
            *waiting = waiting.without(&array.withdrawn);
        }
        let unsent = self.attempt.as_mut().filter(|attempt| attempt.is_open() && attempt.slurm_id.is_none());
        match self.desired {
            DesiredState::Run => {}
            DesiredState::Cancel | DesiredState::Delete => {
                if let Some(attempt) = unsent {
                    array.dropped = array.dropped.union(&attempt.tasks);
                    attempt.verdict =
                        Some(Verdict::new(Outcome::Canceled, "Canceled before it reached Slurm.", now));
                }
                array.dropped = array.dropped.union(&std::mem::take(&mut array.unsubmitted));
                array.dropped = array.dropped.union(&std::mem::take(&mut array.held));
            }
            DesiredState::Pause => {
                if let Some(attempt) = unsent {
                    array.unsubmitted = array.unsubmitted.union(&attempt.tasks);
                    attempt.verdict =
                        Some(Verdict::new(Outcome::Paused, "Paused before it reached Slurm.", now));
                }
            }
        }
    }

    /// Sets status, phase and message by the counts.
    pub(crate) fn settle(mut self, now: Timestamp) -> Transition {
        let in_slurm = self.attempts_in_slurm().next().is_some();
        let awaits =
            self.attempt.as_ref().is_some_and(|attempt| attempt.is_open() && attempt.slurm_id.is_none());
        let has_room = self.room() > 0;
        let Some(array) = &mut self.array else { return Transition { job: self, due_at: None } };
        if let (Some(refusal), false) = (array.refusal.clone(), in_slurm) {
            array.counts.fail_pending();
            let message = format!("{refusal} {}", said(array));
            (array.unsubmitted, array.held) = Default::default();
            self.end(Status::Error, message, now);
            return Transition { job: self, due_at: None };
        }
        let is_over = !in_slurm && !awaits && array.unsubmitted.is_empty() && array.held.is_empty();
        if is_over {
            // Slurm rejected them, and a retry left them out.
            array.counts.fail_pending();
        }
        let (counts, message) = (array.counts, said(array));
        if is_over {
            let status = if counts.error > 0 {
                Status::Error
            } else if counts.canceled > 0 {
                Status::Canceled
            } else {
                Status::Done
            };
            let skips = status == Status::Canceled && !array.skipped.is_empty();
            self.is_skipped = skips && self.started_at.is_none() && self.desired == DesiredState::Run;
            self.end(status, message, now);
            return Transition { job: self, due_at: None };
        }
        let waits = !array.unsubmitted.is_empty() && array.refusal.is_none() && has_room;
        let until = array.not_before.filter(|at| *at > now);
        match self.desired {
            DesiredState::Run => {
                self.status = if counts.running > 0 { Status::Running } else { Status::Pending };
                self.message = message;
            }
            DesiredState::Cancel | DesiredState::Delete => self.status = Status::Canceling,
            DesiredState::Pause if !in_slurm => {
                let over = if self.started_at.is_some() {
                    " When it is resumed, tasks that were running start over."
                } else {
                    ""
                };
                self.pause("Paused by its owner.", format!("Paused. {message}{over}"), now);
                return Transition { job: self, due_at: None };
            }
            DesiredState::Pause => self.status = Status::Pausing,
        }
        let may_submit = self.desired == DesiredState::Run && (awaits || waits);
        self.pending_reason = None;
        (self.phase, self.finishing_since) = (
            match (may_submit, until) {
                (true, None) => Phase::Queued,
                _ if counts.running > 0 => Phase::Running,
                _ if in_slurm => Phase::InQueue,
                (true, Some(_)) => Phase::RetryWait,
                // It waits for tasks of other jobs.
                (false, _) => Phase::Waiting,
            },
            None,
        );
        if self.phase == Phase::Waiting {
            self.message = self.awaited_tasks();
        }
        // A task may be canceled before it begins.
        if counts.running + counts.done + counts.error > 0 {
            self.started_at = self.started_at.or(Some(now));
        }
        self.observed_at = Some(now);
        let due_at = match (may_submit, until) {
            (true, None) => Some(now),
            (true, Some(at)) => Some(at),
            (false, _) => None,
        };
        Transition { job: self, due_at }
    }
}

fn counts(array: &ArrayState, tallies: &[(AttemptNo, AttemptTally)]) -> TaskCounts {
    let sum = |of: fn(&AttemptTally) -> u32| tallies.iter().map(|(_, tally)| of(tally)).sum::<u32>();
    let total = array.counts.total;
    let (running, done, error) = (sum(|t| t.running), sum(|t| t.done), sum(|t| t.error));
    let canceled = sum(|t| t.canceled) + array.dropped.len() + array.skipped.len();
    let pending = total.saturating_sub(running + done + error + canceled);
    TaskCounts { total, pending, running, done, error, canceled }
}

fn verdict(tally: &AttemptTally, tasks: u32, now: Timestamp) -> Verdict {
    let outcome = if tally.error > 0 {
        Outcome::Error
    } else if tally.done == tasks {
        Outcome::Done
    } else if tally.canceled > 0 {
        Outcome::Canceled
    } else {
        Outcome::Retried
    };
    let why = format!("{} of {tasks} tasks done, {} failed.", tally.done, tally.error);
    Verdict::new(outcome, &why, now)
}

/// The counts in words.
fn said(array: &ArrayState) -> String {
    let counts = &array.counts;
    let parts = [
        (counts.error, "failed"),
        (counts.canceled, "canceled"),
        (counts.running, "running"),
        (counts.pending, "waiting"),
    ];
    let mut text = format!("{} of {} tasks done", counts.done, counts.total);
    for (count, word) in parts.into_iter().filter(|(count, _)| *count > 0) {
        let _ = write!(text, ", {count} {word}");
    }
    text.push('.');
    let skipped = array.skipped.len();
    if skipped > 0 {
        let _ = write!(text, " {skipped} were canceled because the tasks that they need did not succeed.");
    }
    text
}

#[cfg(test)]
mod tests;
