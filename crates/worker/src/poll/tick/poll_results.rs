//! The result of one poll, job by job.

use std::{collections::HashMap, mem};

use chrono::TimeDelta;
use domain::{AttemptPlace, Graces, Job, Observation, ObservedChange, Records, Timestamp, observe};
use remote::{PollAnswer, SacctOutcome, SqueueOutcome, StatusChunk, label};
use slurm::{QueueRow, SlurmJobId};

/// The answer to a poll, sorted by job.
#[derive(Debug)]
pub(super) struct PollResults {
    /// The answer without the status files.
    pub(super) answer: PollAnswer,
    /// The new parts of the status files, by the attempt's name in Slurm.
    status: HashMap<String, Vec<StatusChunk>>,
    /// How long the cluster has been unreachable in all.
    unreachable_for: TimeDelta,
}

impl PollResults {
    pub(super) fn new(mut answer: PollAnswer, unreachable_for: TimeDelta) -> Self {
        let mut status: HashMap<String, Vec<StatusChunk>> = HashMap::new();
        for chunk in mem::take(&mut answer.status) {
            status.entry(chunk.key.clone()).or_default().push(chunk);
        }
        Self { answer, status, unreachable_for }
    }

    /// The jobs that changed.
    pub(super) fn changes(&self, jobs: &[Job], graces: &Graces, now: Timestamp) -> Vec<ObservedChange> {
        let changed = jobs.iter().filter_map(|job| {
            let attempt = job.attempt.as_ref()?;
            let id = attempt.slurm_id?;
            let next = observe(job, &self.of(id, attempt.token.as_str()), graces, now)?;
            tracing::info!(
                job.id = %job.id, attempt = attempt.no.get(), slurm.job_id = id.get(),
                job.status = %next.job.status, job.phase = %next.job.phase, "{}", next.job.message
            );
            Some(next)
        });
        changed.collect()
    }

    /// The squeue row of an attempt, if it is the only source about it.
    pub(super) fn queue_alone(&self, attempt: &AttemptPlace) -> Option<&QueueRow> {
        self.of(attempt.slurm_id?, attempt.token.as_str()).queue_alone()
    }

    /// Whether squeue answered.
    pub(super) fn queue_answered(&self) -> bool {
        matches!(self.answer.squeue, SqueueOutcome::Answered(_))
    }

    /// The observation of one task of an array.
    pub(super) fn of_task(&self, array: SlurmJobId, name: &str, index: u32) -> Observation<'_> {
        let label = label(name, Some(index));
        let rows = self.answer.arrays.queue.get(&array);
        let alone = rows.and_then(|rows| rows.tasks.get(&index));
        let waiting = || rows?.waiting.iter().find(|(set, _)| set.contains(index)).map(|(_, row)| row);
        Observation {
            queue: alone.or_else(waiting),
            queue_answered: self.queue_answered() && self.answer.arrays.is_whole(array),
            accounting: self.answer.arrays.record(array, index),
            ..self.of(array, &label)
        }
    }

    /// The observation of one Slurm job; `key` is its name.
    pub(super) fn of(&self, id: SlurmJobId, key: &str) -> Observation<'_> {
        let queue = match &self.answer.squeue {
            SqueueOutcome::Answered(rows) => Some(rows),
            SqueueOutcome::Failed(_) => None,
        };
        let (accounting, records) = match &self.answer.sacct {
            SacctOutcome::Answered(rows) => (Some(rows), Records::Answered),
            SacctOutcome::Disabled => (None, Records::Off),
            SacctOutcome::NotAsked | SacctOutcome::Failed(_) => (None, Records::Unknown),
        };
        Observation {
            // Slurm may have given the id to another job.
            queue: queue.and_then(|rows| rows.get(&id)).filter(|row| row.name == key),
            queue_answered: queue.is_some(),
            accounting: accounting.and_then(|rows| rows.get(&id)),
            records,
            markers: self.answer.markers.get(key),
            status: self.status.get(key).map_or(&[], Vec::as_slice),
            signs_of_life: self.answer.signs_of_life.get(key),
            reports: self.answer.reports.get(key),
            unreachable_for: self.unreachable_for,
        }
    }
}
