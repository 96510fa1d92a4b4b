//! A job as it is stored, with its attempts and events.

use std::collections::BTreeMap;

use domain::{
    ArrayState, Attempt, DesiredState, Failure, Job, JobId, Phase, Run, Secrets, Status, TaskOutcome,
    Timestamp,
};
use persistence::JobEvent;
use serde_json::{Map, Value};
use slurm::TaskSet;

use super::Held;

#[derive(Debug)]
pub(super) struct JobRow {
    /// Its columns. The attempts and runs are in `attempts` and `runs`.
    pub(super) job: Job,
    /// The newest attempt; 0: none yet.
    pub(super) attempt: u32,
    pub(super) attempts: BTreeMap<u32, Attempt>,
    /// The run of task 0 in each attempt.
    pub(super) runs: BTreeMap<u32, Run>,
    /// Of an array: the runs by attempt and task.
    pub(super) tasks: BTreeMap<(u32, u32), TaskRow>,
    /// The tasks that the owner has canceled.
    pub(super) withdrawn: TaskSet,
    pub(super) scripts: BTreeMap<u32, String>,
    pub(super) due_at: Option<Timestamp>,
    pub(super) held: Held,
    pub(super) secrets: Option<Secrets>,
    pub(super) request_hash: [u8; 32],
    pub(super) events: Vec<JobEvent>,
    /// It does not wait for other jobs again.
    pub(super) needs_met: bool,
    /// The job that converts its image, while it waits for it.
    pub(super) conversion: Option<JobId>,
    /// How many removals of its files have failed.
    pub(super) purges_failed: u32,
}

/// The run of a task.
#[derive(Debug, Clone)]
pub(super) struct TaskRow {
    pub(super) run: Run,
    pub(super) over_since: Option<Timestamp>,
    pub(super) outcome: Option<TaskOutcome>,
    pub(super) superseded: bool,
    /// Not in `run`, because no call reads it with its run.
    pub(super) failure: Option<Failure>,
}

/// A change of one of these is a transition.
type Stage = (domain::Status, Phase, u32);

impl JobRow {
    pub(super) fn new(job: Job, secrets: Option<Secrets>, request_hash: [u8; 32], now: Timestamp) -> Self {
        let mut row = Self {
            job: Job { attempt: None, version: 1, last_modified: job.created_at, ..job },
            attempt: 0,
            attempts: BTreeMap::new(),
            runs: BTreeMap::new(),
            tasks: BTreeMap::new(),
            withdrawn: TaskSet::default(),
            scripts: BTreeMap::new(),
            due_at: Some(now),
            held: None,
            secrets,
            request_hash,
            events: Vec::new(),
            needs_met: false,
            conversion: None,
            purges_failed: 0,
        };
        row.record_transition();
        row
    }

    /// The job with its newest attempt, and the earlier ones of an array that are in Slurm.
    pub(super) fn current(&self) -> Job {
        let array = self.job.array.clone().map(|array| {
            let in_slurm = |attempt: &&Attempt| attempt.is_open() && attempt.slurm_id.is_some();
            let earlier = self.attempts.range(..self.attempt).map(|(_, attempt)| attempt).filter(in_slurm);
            ArrayState {
                withdrawn: self.withdrawn.clone(),
                earlier: earlier.cloned().collect(),
                failure: self.failure_of_array(),
                ..array
            }
        });
        let run = self.runs.get(&self.attempt).filter(|_| array.is_none());
        Job {
            attempt: self.attempts.get(&self.attempt).cloned(),
            run: run.cloned().unwrap_or_default(),
            array,
            ..self.job.clone()
        }
    }

    /// Why the first of its tasks failed that did.
    fn failure_of_array(&self) -> Option<Failure> {
        let failed = |row: &&TaskRow| row.outcome == Some(TaskOutcome::Error) && !row.superseded;
        let failures = self.tasks.values().filter(failed);
        let failures = failures.filter_map(|row| Some((row.run.task, row.failure.as_ref()?)));
        let first = failures.min_by_key(|(task, _)| *task);
        first.filter(|_| self.job.status == Status::Error).map(|(_, failure)| failure.clone())
    }

    /// Whether Slurm has the job.
    pub(super) fn is_active(&self) -> bool {
        matches!(self.job.phase, Phase::InQueue | Phase::Running | Phase::Suspended)
    }

    pub(super) fn stage(&self) -> Stage {
        (self.job.status, self.job.phase, self.attempt)
    }

    /// Records a transition, as the trigger of the schema does after each change of the row.
    pub(super) fn changed_from(&mut self, stage: Stage) {
        if self.stage() != stage {
            self.record_transition();
        }
    }

    fn record_transition(&mut self) {
        let slurm_id = self.attempts.get(&self.attempt).and_then(|attempt| attempt.slurm_id);
        let mut data = Map::new();
        data.insert("status".to_owned(), self.job.status.to_string().into());
        data.insert("phase".to_owned(), self.job.phase.to_string().into());
        data.insert("message".to_owned(), self.job.message.clone().into());
        if let Some(id) = slurm_id {
            data.insert("slurm_job_id".to_owned(), id.to_string().into());
        }
        self.add_event("transition", None, false, Value::Object(data), self.attempt, self.job.last_modified);
    }

    pub(super) fn add_event(
        &mut self,
        kind: &str,
        file: Option<&str>,
        earlier_run: bool,
        data: Value,
        attempt: u32,
        at: Timestamp,
    ) {
        self.events.push(JobEvent {
            seq: self.events.len() as u64 + 1,
            at,
            kind: kind.to_owned(),
            attempt,
            file: file.map(str::to_owned),
            earlier_run,
            data,
        });
    }

    /// Adds new lines of the status files.
    pub(super) fn add_lines(&mut self, read: &Job, at: Timestamp) {
        let Some(attempt) = &read.attempt else { return };
        self.add_lines_of(attempt.no.get(), &read.run, at);
    }

    pub(super) fn add_lines_of(&mut self, attempt: u32, run: &Run, at: Timestamp) {
        for event in run.status.events() {
            let kind: &str = event.kind.into();
            self.add_event(kind, Some(&event.file), event.earlier_run, event.data.clone(), attempt, at);
        }
    }

    /// The constraint of the schema that the row violates, if any.
    pub(super) fn broken_rule(&self) -> Option<&'static str> {
        let ended = self.job.phase == Phase::Ended;
        if ended != self.job.status.is_final() {
            return Some("ended_is_final");
        }
        if ended != self.job.finished_at.is_some() {
            return Some("ended_has_time");
        }
        let is_due = self.due_at.is_some() && self.job.desired != DesiredState::Delete;
        if ended && (self.secrets.is_some() || is_due) {
            return Some("ended_keeps_none");
        }
        let half = |attempt: &Attempt| attempt.submitted_at.is_some() != attempt.slurm_id.is_some();
        self.attempts.values().any(half).then_some("submitted_has_id")
    }
}
