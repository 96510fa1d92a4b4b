//! What squeue and sacct say of the tasks of arrays.

use std::collections::BTreeSet;

use remote::{ArrayAnswers, Poll};
use slurm::{QueueRow, SlurmJobId, SlurmState, TaskSet};

use super::{
    LivingCluster,
    answers::{queue_row, record_row},
    life::SlurmJob,
};

impl LivingCluster {
    /// What squeue says of the tasks of arrays; nothing if it does not answer.
    pub fn tasks(&self, poll: &Poll) -> ArrayAnswers {
        let site = self.site();
        let mut answers = ArrayAnswers::default();
        if site.weather.scheduler_silent || site.weather.rate_limited {
            return answers;
        }
        let asked: BTreeSet<SlurmJobId> = poll
            .arrays
            .iter()
            .map(|array| array.id)
            .chain(poll.jobs.iter().filter(|job| job.index.is_some()).map(|job| job.id))
            .collect();
        let shown = |job: &&SlurmJob| job.queued && asked.contains(&job.id) && !site.weather.queue_lies_empty;
        for job in site.jobs.values().filter(shown) {
            let Some(index) = job.index else { continue };
            let rows = answers.queue.entry(job.id).or_default();
            match rows.waiting.first_mut() {
                Some((waiting, _)) if job.waits_together() => waiting.insert(index),
                None if job.waits_together() => rows.waiting.push((TaskSet::from(index), queue_row(job))),
                _ => drop(rows.tasks.insert(index, queue_row(job))),
            }
        }
        answers
    }

    /// Adds what sacct says of the tasks that squeue does not show, or does not say enough about.
    pub fn add_task_records(&self, poll: &Poll, answers: &mut ArrayAnswers) {
        let site = self.site();
        if site.weather.accounting_silent {
            return;
        }
        for job in &poll.jobs {
            let Some(index) = job.index else { continue };
            let row = answers.queue.get(&job.id).and_then(|rows| rows.tasks.get(&index));
            let waits = answers
                .queue
                .get(&job.id)
                .is_some_and(|rows| rows.waiting.iter().any(|(set, _)| set.contains(index)));
            let is_told = |row: &QueueRow| !matches!(row.state, SlurmState::Failed | SlurmState::Cancelled);
            if waits || row.is_some_and(is_told) {
                continue;
            }
            let one = site.jobs.values().find(|one| one.id == job.id && one.index == Some(index));
            if let Some((one, record)) = one.and_then(|one| Some((one, site.record(one)?))) {
                answers.records.insert((job.id, index), record_row(one, record));
            }
        }
    }
}
