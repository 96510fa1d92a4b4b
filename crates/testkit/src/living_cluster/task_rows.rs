//! What squeue and sacct say of the tasks of arrays.

use std::collections::BTreeSet;

use remote::{ArrayAnswers, Poll, WatchedArray};
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
            let alike = rows.waiting.iter_mut().find(|(_, row)| row.state == job.state);
            match alike {
                _ if !job.waits_together() && !job.never_began() => {
                    rows.tasks.insert(index, queue_row(job));
                }
                Some((set, _)) => set.insert(index),
                None => rows.waiting.push((TaskSet::from(index), queue_row(job))),
            }
        }
        answers
    }

    /// Adds what sacct says of the tasks that squeue does not show, or does not say enough about. Returns whether it was asked.
    pub fn add_task_records(&self, poll: &Poll, answers: &mut ArrayAnswers) -> bool {
        let site = self.site();
        let is_told = |row: &QueueRow| !matches!(row.state, SlurmState::Failed | SlurmState::Cancelled);
        let canceled = |array: &&WatchedArray| {
            let rows = answers.queue.get(&array.id);
            rows.is_some_and(|rows| rows.waiting.iter().any(|(_, row)| row.state == SlurmState::Cancelled))
        };
        let mut wholes: BTreeSet<SlurmJobId> =
            poll.arrays.iter().filter(canceled).map(|array| array.id).collect();
        let mut asked = BTreeSet::new();
        for job in &poll.jobs {
            let Some(index) = job.index else { continue };
            let rows = answers.queue.get(&job.id);
            let row = rows.and_then(|rows| rows.tasks.get(&index));
            if row.is_some_and(is_told) {
                continue;
            }
            if row.is_none() {
                wholes.insert(job.id);
            }
            asked.insert((job.id, index));
        }
        let is_asked = !wholes.is_empty() || !asked.is_empty();
        if site.weather.accounting_silent {
            return is_asked;
        }
        for one in site.jobs.values() {
            let Some((index, record)) = one.index.zip(site.record(one)) else { continue };
            if asked.contains(&(one.id, index)) && !one.never_began() {
                answers.records.insert((one.id, index), record_row(one, record));
            }
            if wholes.contains(&one.id) && one.never_began() && record.state.is_final() {
                let (set, _) = answers
                    .never_began
                    .entry(one.id)
                    .or_insert_with(|| (TaskSet::default(), record_row(one, record)));
                set.insert(index);
            }
        }
        // Accounting does not take those out of the record that have begun.
        for (id, (set, _)) in &mut answers.never_began {
            for one in site.jobs.values().filter(|one| one.id == *id && site.record(one).is_some()) {
                *set = set.union(&one.index.into_iter().collect());
            }
        }
        is_asked
    }
}
