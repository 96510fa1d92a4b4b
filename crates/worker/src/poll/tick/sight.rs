//! What one poll saw, job by job.

use std::{collections::HashMap, mem};

use chrono::TimeDelta;
use domain::{AttemptPlace, Graces, Job, Observation, ObservedChange, Records, Timestamp, observe};
use remote::{PollAnswer, SacctOutcome, SqueueOutcome, StatusChunk};
use slurm::{QueueRow, SlurmJobId};

/// The answer to a poll, in which each job finds its own.
#[derive(Debug)]
pub(super) struct Sight {
    /// All of it but the status files.
    pub(super) answer: PollAnswer,
    /// What is new in the status files, by the attempt's token.
    status: HashMap<String, Vec<StatusChunk>>,
    /// How long in all the cluster could not be heard so far.
    unreachable_for: TimeDelta,
}

impl Sight {
    pub(super) fn new(mut answer: PollAnswer, unreachable_for: TimeDelta) -> Self {
        let mut status: HashMap<String, Vec<StatusChunk>> = HashMap::new();
        for chunk in mem::take(&mut answer.status) {
            status.entry(chunk.key.clone()).or_default().push(chunk);
        }
        Self { answer, status, unreachable_for }
    }

    /// What changed of the jobs.
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

    /// The queue's row of an attempt of which nothing else was seen.
    pub(super) fn queue_alone(&self, attempt: &AttemptPlace) -> Option<&QueueRow> {
        self.of(attempt.slurm_id?, attempt.token.as_str()).queue_alone()
    }

    /// What was seen of one Slurm job; `key` is its attempt's token.
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
            queue: queue.and_then(|rows| rows.get(&id)),
            queue_answered: queue.is_some(),
            accounting: accounting.and_then(|rows| rows.get(&id)),
            records,
            markers: self.answer.markers.get(key),
            status: self.status.get(key).map_or(&[], Vec::as_slice),
            signs_of_life: self.answer.signs_of_life.get(key),
            unreachable_for: self.unreachable_for,
        }
    }
}
