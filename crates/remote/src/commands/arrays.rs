//! Tasks of job arrays in a poll. The tasks that wait together are one row of squeue, whatever their number.

use std::collections::HashMap;

use crate::Poll;
use slurm::{AccountingRow, JobName, QueueRow, SlurmJobId, SlurmState, TaskSet};

/// The bytes of answer for each task that has left the rest, and how many of them one poll takes.
const BYTES_PER_TASK: usize = 1024;
const MOST_TASKS: u32 = 5000;

/// The record of tasks that were canceled one by one, as by `scancel --name`, has no indices. 4,000,000 is the highest that Slurm allows
/// (`MaxArraySize` in slurm.conf(5)).
const EVERY_INDEX: &str = "[0-4000000]";

/// An array with tasks that wait.
#[derive(Debug, Clone)]
pub struct WatchedArray {
    /// Its id.
    pub id: SlurmJobId,
    /// The attempt's name in Slurm.
    pub name: JobName,
    /// The indices of its tasks that waited before. One that has its own row now is reported.
    pub rest: TaskSet,
}

impl WatchedArray {
    pub(super) fn bytes(&self) -> usize {
        usize::try_from(self.rest.len().min(MOST_TASKS)).unwrap_or(usize::MAX).saturating_mul(BYTES_PER_TASK)
            + 256 * 1024
    }
}

/// What squeue and sacct answered about tasks of arrays.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ArrayAnswers {
    /// The rows of each array in the queue.
    pub queue: HashMap<SlurmJobId, ArrayQueue>,
    /// The records of single tasks in accounting, by array and index.
    pub records: HashMap<(SlurmJobId, u32), AccountingRow>,
    /// The record of the tasks of each array that ended together, before they began: a superset of them, because accounting does not
    /// take those out that have begun.
    pub never_began: HashMap<SlurmJobId, (TaskSet, AccountingRow)>,
    /// A row was cut, so that a missing task of any array may be in the queue.
    pub is_cut: bool,
}

/// The rows of an array in the queue.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ArrayQueue {
    /// The indices that wait together, and their row.
    pub waiting: Vec<(TaskSet, QueueRow)>,
    /// The rows of single tasks, by index.
    pub tasks: HashMap<u32, QueueRow>,
    /// A row was malformed, so that a missing task may be in the queue.
    pub is_cut: bool,
}

impl ArrayAnswers {
    /// Whether a missing task of this array is certainly not in the queue.
    pub fn is_whole(&self, array: SlurmJobId) -> bool {
        !self.is_cut && self.queue.get(&array).is_none_or(|rows| !rows.is_cut)
    }

    /// What accounting says of a task.
    pub fn record(&self, array: SlurmJobId, index: u32) -> Option<&AccountingRow> {
        let row = self.queue.get(&array).and_then(|rows| rows.tasks.get(&index));
        let may_be = row.is_none_or(|row| row.state == SlurmState::Cancelled);
        let together = || self.never_began.get(&array).filter(|(set, _)| may_be && set.contains(index));
        self.records.get(&(array, index)).or_else(|| together().map(|(_, row)| row))
    }

    /// The indices of an array that are in the queue.
    pub fn listed(&self, array: SlurmJobId) -> TaskSet {
        let Some(rows) = self.queue.get(&array) else { return TaskSet::default() };
        let single: TaskSet = rows.tasks.keys().copied().collect();
        rows.waiting.iter().fold(single, |all, (waiting, _)| all.union(waiting))
    }
}

/// Reads the rows of arrays.
#[derive(Debug, Default)]
pub(super) struct ArrayReader<'a> {
    names: HashMap<SlurmJobId, Vec<&'a str>>,
    answers: ArrayAnswers,
}

impl<'a> ArrayReader<'a> {
    pub(super) fn new(poll: &'a Poll) -> Self {
        let mut names: HashMap<SlurmJobId, Vec<&str>> = HashMap::new();
        let tasks = poll.jobs.iter().filter(|job| job.index.is_some());
        let tasks = tasks.map(|job| (job.id, job.key.as_str()));
        for (id, name) in tasks.chain(poll.arrays.iter().map(|array| (array.id, array.name.as_str()))) {
            let known = names.entry(id).or_default();
            if !known.contains(&name) {
                known.push(name);
            }
        }
        Self { names, answers: ArrayAnswers::default() }
    }

    pub(super) fn finish(self) -> ArrayAnswers {
        self.answers
    }

    /// A line "id, indices as squeue writes them, row".
    pub(super) fn row(&mut self, line: &str) {
        let mut words = line.splitn(3, ' ');
        let (id, indices, row) = (words.next(), words.next(), words.next());
        let Some(id) = id.and_then(|id| id.parse::<SlurmJobId>().ok()) else {
            self.answers.is_cut = true;
            return;
        };
        let rows = self.answers.queue.entry(id).or_default();
        let read = indices.and_then(indices_of).zip(row.and_then(QueueRow::read));
        let Some((indices, row)) = read else {
            rows.is_cut = true;
            return;
        };
        // Slurm gives ids again after a reset: another name is another array.
        if !self.names.get(&id).is_some_and(|names| names.contains(&row.name.as_str())) {
            return;
        }
        match indices {
            Indices::One(index) => {
                rows.tasks.insert(index, row);
            }
            Indices::Several(indices) => rows.waiting.push((indices, row)),
        }
    }

    /// Takes a record of accounting, if it is that of a task or of several.
    pub(super) fn record(&mut self, text: &str) -> bool {
        let Some((id, rest)) = text.split_once('\u{1f}') else { return false };
        let (array, indices) = id.split_once('_').unwrap_or((id, EVERY_INDEX));
        let Some(mut row) = AccountingRow::read(&format!("{array}\u{1f}{rest}")) else {
            return id.contains('_');
        };
        if !self.names.get(&row.id).is_some_and(|names| names.contains(&row.name.as_str())) {
            return id.contains('_');
        }
        if let Ok(index) = indices.parse() {
            let key = (row.id, index);
            row.before = self.answers.records.get(&key).map(AccountingRow::as_past_run);
            self.answers.records.insert(key, row);
        } else if row.state.is_final()
            && let Some(set) = indices.strip_prefix('[').and_then(|rest| tasks_of(rest.trim_end_matches(']')))
        {
            // Of tasks that wait it would prove nothing: one of them may have begun since.
            self.answers.never_began.insert(row.id, (set, row));
        }
        true
    }
}

enum Indices {
    One(u32),
    Several(TaskSet),
}

/// `7`, or the tasks that wait.
fn indices_of(text: &str) -> Option<Indices> {
    text.parse().map(Indices::One).ok().or_else(|| tasks_of(text).map(Indices::Several))
}

/// `5-40%5`, `0-90:10%3`.
fn tasks_of(text: &str) -> Option<TaskSet> {
    let (set, throttle) = text.split_once('%').unwrap_or((text, "0"));
    throttle.parse::<u32>().ok()?;
    set.parse().ok().filter(|set: &TaskSet| !set.is_empty())
}
