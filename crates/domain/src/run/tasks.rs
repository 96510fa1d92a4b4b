//! The tasks of an array, one by one. A task is observed and concluded as the job of one task that it would be.

use slurm::{AccountingRow, QueueRow, SlurmState, TaskSet};

use super::conclude::{Ending, Findings, conclude};
use super::observe::observe;
use crate::{
    clock::Timestamp,
    job::{
        array::TaskOutcome,
        attempt::{Attempt, PastFailure},
        run::Run,
        status::{Phase, Status},
        stored::{DesiredState, Job},
    },
    run::{
        activity,
        evidence::{Observation, ROOT},
        graces::Graces,
        reports::Reporting,
    },
};

/// The job without what only the whole array needs: what its tasks are made from.
#[derive(Debug, Clone)]
pub struct TaskTemplate {
    job: Job,
    /// The tasks that their owner has canceled.
    withdrawn: TaskSet,
}

impl TaskTemplate {
    pub fn of(job: &Job) -> Self {
        let mut template = Job { array: None, attempt: None, run: Run::default(), ..job.clone() };
        template.spec.array = None;
        template.failures.clear();
        template.finishing_since = None;
        let withdrawn = job.array.as_ref().map(|array| array.withdrawn.clone());
        Self { job: template, withdrawn: withdrawn.unwrap_or_default() }
    }

    /// The job of one task in an attempt.
    fn task(&self, attempt: &Attempt, run: &Run) -> Job {
        let mut job = self.job.clone();
        job.desired = self.desired_of(run.task);
        let mut attempt = attempt.clone();
        // Nodes are excluded for the whole attempt.
        attempt.excluded.clear();
        job.attempt = Some(attempt);
        job.phase = run.phase();
        job.run = run.clone();
        job
    }

    /// What the owner wants of one task.
    pub fn desired_of(&self, task: u32) -> DesiredState {
        let is_withdrawn = self.withdrawn.contains(task) && self.job.desired != DesiredState::Delete;
        if is_withdrawn { DesiredState::Cancel } else { self.job.desired }
    }

    /// The run after an observation; `None` if nothing changed.
    pub fn observe(
        &self,
        attempt: &Attempt,
        run: &Run,
        seen: &Observation<'_>,
        graces: &Graces,
        now: Timestamp,
    ) -> Option<Run> {
        let job = self.task(attempt, run);
        let next = observe(&job, seen, graces, now)?.job.run;
        (next != *run).then_some(next)
    }

    /// Whether a poll checks the activity of a run.
    pub fn wants_signs_of_life(&self, run: &Run, last_poll: Option<Timestamp>, now: Timestamp) -> bool {
        let is_watched = run.phase() == Phase::Running
            && self.desired_of(run.task) == DesiredState::Run
            && run.kill_reason.is_none();
        let is_due = |limit| activity::check_is_due(limit, run.activity.is_some(), last_poll, now);
        is_watched && self.job.spec.timeout_minutes.is_some_and(is_due)
    }

    /// What each of its tasks may report.
    pub fn reporting(&self) -> Reporting {
        Reporting::of(&self.job.spec)
    }

    /// The run of a task before anything is known of it. `earlier`: its run in an earlier attempt, whose status files it goes on
    /// with.
    pub fn first_run(&self, task: u32, earlier: Option<&Run>) -> Run {
        earlier
            .map_or_else(|| Run { task, ..Run::default() }, |earlier| earlier.next_attempt(&earlier.progress))
    }

    /// The run of a task that has vanished from the tasks that wait together. One that was canceled before it began leaves no record in
    /// Slurm, and neither does one that has ended a moment ago: only time tells them apart.
    pub fn vanished(&self, task: u32, earlier: Option<&Run>, now: Timestamp) -> Run {
        Run { missing_since: Some(now), ..self.first_run(task, earlier) }
    }

    /// How an ended run ends its task.
    pub fn conclude(
        &self,
        attempt: &Attempt,
        ended: &EndedRun,
        found: &Findings<'_>,
        graces: &Graces,
        now: Timestamp,
    ) -> TaskEnding {
        let mut job = self.task(attempt, &ended.run);
        job.phase = Phase::Finishing;
        job.finishing_since = Some(ended.since);
        job.failures.clone_from(&ended.failures);
        let known = job.failures.len();
        let mut ending = conclude(&job, found, graces, now);
        if let Ending::Adopt(adopted) = &ending {
            // Two Slurm arrays were submitted for the attempt, and the task ran in the other one.
            let first = adopted.attempt.as_ref().and_then(|attempt| attempt.slurm_id);
            job.attempt = job.attempt.map(|attempt| Attempt { slurm_id: first, ..attempt });
            (job.run.state, job.run.exit) = (None, None);
            ending = conclude(&job, found, graces, now);
        }
        let (job, outcome, until) = match ending {
            Ending::Ended(job) => {
                let outcome = match job.status {
                    Status::Done => TaskOutcome::Done,
                    Status::Canceled => TaskOutcome::Canceled,
                    Status::Error
                    | Status::Pending
                    | Status::Started
                    | Status::Running
                    | Status::Canceling
                    | Status::Pausing
                    | Status::Paused
                    | Status::Resuming => TaskOutcome::Error,
                };
                (job, Some(outcome), None)
            }
            Ending::Paused(job) => (job, Some(TaskOutcome::Retried), None),
            Ending::Retry { job, due_at } => (job, Some(TaskOutcome::Retried), Some(due_at)),
            Ending::Adopt(job) => (job, None, Some(now + graces.finish)),
            Ending::Wait { job, until } => (job, None, Some(until)),
        };
        let failure = job.failures.get(known).cloned();
        TaskEnding { run: job.run, outcome, message: job.message, failure, until }
    }
}

/// A run that is over and not concluded.
#[derive(Debug, Clone)]
pub struct EndedRun {
    pub run: Run,
    /// Since when it is over.
    pub since: Timestamp,
    /// The failures of its task before.
    pub failures: Vec<PastFailure>,
}

/// What became of a task.
#[derive(Debug)]
pub struct TaskEnding {
    pub run: Run,
    /// `None`: more evidence may follow.
    pub outcome: Option<TaskOutcome>,
    pub message: String,
    /// The infrastructure failed it.
    pub failure: Option<PastFailure>,
    /// When it is concluded again, or when its task may be submitted again.
    pub until: Option<Timestamp>,
}

/// Whether a row says only that its tasks wait: then they need no runs. Slurm holds a task that could not be launched, and shows it in a
/// row of its own; accounting tells it from one that somebody holds.
pub fn waits_only(row: &QueueRow, is_alone: bool) -> bool {
    let is_held = || ["JobHeld", "launch failed"].iter().any(|held| row.reason.starts_with(held));
    row.state.is_waiting() && !(is_alone && is_held())
}

/// Slurm gives the last task of an array the id of the array. A node that cannot start it cancels it by that id, as root, and with it all
/// tasks of the array: their launch has failed, too. `record`: what accounting has of a task.
pub fn share_failed_launch<'a>(runs: &mut [Run], record: impl Fn(u32) -> Option<&'a AccountingRow>) {
    let canceled_by_root =
        |run: &Run| record(run.task).filter(|record| record.canceled_by == Some(ROOT))?.end;
    let failed = runs.iter().filter(|run| run.state == Some(SlurmState::LaunchFailed));
    let failed: Vec<i64> = failed.filter_map(canceled_by_root).collect();
    for run in runs.iter_mut().filter(|run| run.state == Some(SlurmState::Cancelled)) {
        if canceled_by_root(run).is_some_and(|end| failed.contains(&end)) {
            run.state = Some(SlurmState::LaunchFailed);
        }
    }
}

#[cfg(test)]
mod tests {
    use slurm::SlurmJobId;
    use test_case::test_case;

    use super::*;

    #[test]
    fn tasks_that_root_canceled_with_one_that_could_not_be_started_share_its_failure() {
        let record = |canceled_by, end| AccountingRow {
            id: SlurmJobId::new(7).unwrap(),
            state: SlurmState::Cancelled,
            exit_code: None,
            reason: String::new(),
            start: None,
            end: Some(end),
            nodes: String::new(),
            name: "job".to_owned(),
            canceled_by,
            before: None,
        };
        // The last one could not be started, one ended with it, one an hour before, and one by its owner.
        let records =
            [(Some(0), 20), (Some(0), 20), (Some(0), 10), (Some(1000), 20)].map(|(by, end)| record(by, end));
        let canceled = |task| Run { task, state: Some(SlurmState::Cancelled), ..Run::default() };
        let mut runs: Vec<Run> = (0..4).map(canceled).collect();
        let of = |task: u32| records.get(task as usize);
        share_failed_launch(&mut runs, of);
        assert!(
            runs.iter().all(|run| run.state == Some(SlurmState::Cancelled)),
            "an administrator canceled them"
        );
        runs[0].state = Some(SlurmState::LaunchFailed);
        share_failed_launch(&mut runs, of);
        let failed: Vec<u32> = runs
            .iter()
            .filter(|run| run.state == Some(SlurmState::LaunchFailed))
            .map(|run| run.task)
            .collect();
        assert_eq!(failed, [0, 1]);
    }

    #[test_case(SlurmState::Pending, "Priority", true => true)]
    #[test_case(SlurmState::Pending, "JobHeldUser", false => true; "somebody holds the whole array")]
    #[test_case(SlurmState::Pending, "JobHeldAdmin", true => false; "perhaps its launch failed")]
    #[test_case(SlurmState::Pending, "launch failed requeued held", true => false)]
    #[test_case(SlurmState::Running, "None", true => false)]
    fn a_task_that_only_waits_needs_no_run(state: SlurmState, reason: &str, is_alone: bool) -> bool {
        let row = QueueRow {
            id: SlurmJobId::new(7).unwrap(),
            state,
            reason: reason.to_owned(),
            nodes: String::new(),
            submit: None,
            start: None,
            end: None,
            partition: "polar".to_owned(),
            name: "job".to_owned(),
        };
        waits_only(&row, is_alone)
    }
}
