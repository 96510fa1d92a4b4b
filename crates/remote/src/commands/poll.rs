//! Polls many jobs in one command.

use std::{collections::HashMap, time::Duration};

use crate::{
    AttemptKey, Call, ParseError, RawOutput, RemoteCommand, Repeat, Subject,
    answer::{Answer, Line},
    commands::{
        arrays::{ArrayAnswers, ArrayReader, WatchedArray},
        markers::{MarkerReader, Markers},
        reports::{ReportFiles, ReportReader, Reports},
        status::{STATUS_BACKLOG, StatusChunk, StatusCursor, StatusReader},
    },
    rpcs,
    stdin_writer::StdinWriter,
};
use slurm::{AccountingRow, Failure, JobName, QueueRow, RemotePath, SlurmJobId};

const PROGRAM: &str = program!("preamble", "state_dirs", "status_files", "poll");

/// 50 s for squeue, 65 s for sacct, 35 s, 30 s and twice 25 s for the searches, and 26 s more for each that has to look at
/// one job after the other, four times 36 s for marks and reports, 23 s for notes, and some for reading.
const DEADLINE: Duration = Duration::from_secs(531);

/// The bytes of answer for each job: a row of squeue or sacct, the markers and reports.
const BYTES_PER_JOB: usize = 7 * 1024;

/// The most rows of jobs outside the question, and the bytes of answer for each.
const MOST_OTHERS: usize = 5000;
const BYTES_PER_OTHER: usize = 500;

/// The bytes of answer for each known status file, beside its new bytes: the overlap and a long path.
const BYTES_PER_FILE: usize = 4 * 1024;

/// Reads the state of all the jobs and the new part of their status files.
#[derive(Debug, Clone)]
pub struct Poll {
    /// The jobs, and those tasks of arrays that do not wait.
    pub jobs: Vec<Watched>,
    /// The arrays with tasks that wait.
    pub arrays: Vec<WatchedArray>,
    /// The most new bytes of one status file; the next poll reads the rest.
    pub status_bytes_per_file: usize,
    /// The most new bytes of all status files together.
    pub status_bytes_total: usize,
    /// Other jobs of our user are reported too if their names begin so; the first 5000.
    pub others: Option<JobName>,
}

/// A job to poll.
#[derive(Debug, Clone)]
pub struct Watched {
    /// Its id.
    pub id: SlurmJobId,
    /// The attempt. A Slurm job with this id and another name is another job.
    pub key: AttemptKey,
    /// The directory of its status files, at most three levels down.
    pub results_dir: RemotePath,
    /// Where its markers are.
    pub state_dir: RemotePath,
    /// How far each status file has been read.
    pub status: Vec<StatusCursor>,
    /// Where its logs are, to report its signs of life; needs a results directory. None: not reported.
    pub signs_of_life: Option<RemotePath>,
    /// Its index, if it is a task of the array `id`.
    pub index: Option<u32>,
    /// What is read of it while it runs.
    pub reports: ReportFiles,
}

impl Watched {
    /// The name of what it left in the answer: its name in Slurm, with the index of a task.
    pub fn label(&self) -> String {
        label(self.key.as_str(), self.index)
    }
}

/// The name of a task's files in answers. No name of an attempt has an underscore.
pub fn label(name: &str, index: Option<u32>) -> String {
    index.map_or_else(|| name.to_owned(), |index| format!("{name}_{index}"))
}

/// How much a running job has written: results, logs and markers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SignsOfLife {
    /// How many files.
    pub files: u64,
    /// The bytes of all of them.
    pub bytes: u64,
    /// When the newest was written, in microseconds since 1970 by the clock of the file system; 0 if there are no files.
    pub newest: i64,
}

/// The answer to a poll.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PollAnswer {
    /// The cluster's clock, in seconds since 1970, before the poll.
    pub remote_time: i64,
    /// The answer of squeue.
    pub squeue: SqueueOutcome,
    /// The answer of sacct about jobs that squeue does not show, or does not show enough about.
    pub sacct: SacctOutcome,
    /// The new parts of the status files of jobs that do not wait. If squeue failed, only of files that were read before.
    pub status: Vec<StatusChunk>,
    /// The markers of jobs that have ended or that squeue does not show, by name in Slurm.
    pub markers: HashMap<String, Markers>,
    /// The signs of life of running jobs, where asked for and readable, by name in Slurm.
    pub signs_of_life: HashMap<String, SignsOfLife>,
    /// What running jobs report of themselves, where asked for, by name in Slurm.
    pub reports: HashMap<String, Reports>,
    /// What squeue and sacct answered about tasks of arrays.
    pub arrays: ArrayAnswers,
    /// The number of malformed rows and files that were left out; none is a polled job in the queue.
    pub dropped_rows: usize,
}

/// The answer of squeue.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SqueueOutcome {
    /// It answered: a polled job that is not here under its own name is not in the queue, and a controller that was reset gives its id to
    /// another job. A job with a malformed row is here, with [`SlurmState::Unknown`](slurm::SlurmState::Unknown) if its state is
    /// malformed. Other jobs of our user with names like ours are here too.
    Answered(HashMap<SlurmJobId, QueueRow>),
    /// It failed: nothing is known about any job.
    Failed(Failure),
}

/// The answer of sacct.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SacctOutcome {
    /// squeue answered enough about all the jobs, or failed.
    NotAsked,
    /// It answered. A record may be missing for some seconds after a submission or a start of the controller.
    Answered(HashMap<SlurmJobId, AccountingRow>),
    /// The cluster has no accounting: only a job's files tell about a job that squeue does not show.
    Disabled,
    /// It failed, or did not answer about all the jobs.
    Failed(Failure),
}

impl RemoteCommand for Poll {
    type Output = PollAnswer;

    const NAME: &'static str = "poll";
    const REPEAT: Repeat = Repeat::Safe;

    fn render(&self) -> Call {
        let mut stdin = StdinWriter::default();
        let known_files = self.jobs.iter().map(|job| job.status.len()).sum::<usize>();
        stdin
            .field(self.jobs.len())
            .field(self.arrays.len())
            .field(known_files)
            .field(self.status_bytes_per_file)
            .field(self.status_bytes_total)
            .field(STATUS_BACKLOG)
            .field(self.others.as_ref().map_or("-", JobName::as_str))
            .field(MOST_OTHERS)
            .end_line();
        for (index, job) in self.jobs.iter().enumerate() {
            stdin
                .field(index)
                .field(job.id)
                .field(&job.key.name)
                .field(&job.results_dir)
                .field(&job.state_dir)
                .path_or_absent(job.signs_of_life.as_ref())
                .field(job.index.map_or_else(|| "-".to_owned(), |index| index.to_string()))
                .field(if job.reports.services { "1" } else { "-" })
                .path_or_absent(job.reports.progress.as_ref())
                .field(job.reports.usage.map_or_else(|| "-".to_owned(), |bytes| bytes.to_string()))
                .end_line();
        }
        for array in &self.arrays {
            stdin.field(array.id).field(&array.name).field(&array.rest).end_line();
        }
        for (index, job) in self.jobs.iter().enumerate() {
            stdin.cursors(index, &job.status);
        }
        stdin.call(
            PROGRAM,
            DEADLINE,
            super::encoded(self.status_bytes_total).saturating_add(
                super::STDOUT_BASE * 16
                    + MOST_OTHERS * BYTES_PER_OTHER
                    + self.jobs.len() * BYTES_PER_JOB
                    + self
                        .jobs
                        .iter()
                        .filter_map(|job| job.reports.usage)
                        .map(super::encoded)
                        .fold(0, usize::saturating_add)
                    + self.arrays.iter().map(WatchedArray::bytes).fold(0, usize::saturating_add)
                    + known_files * BYTES_PER_FILE,
            ),
        )
    }

    fn rpcs(&self) -> u32 {
        rpcs::SQUEUE + if self.jobs.is_empty() { 0 } else { rpcs::SACCT }
    }

    fn rpcs_made(&self, answer: &PollAnswer) -> u32 {
        let asked = !matches!(answer.sacct, SacctOutcome::NotAsked);
        rpcs::SQUEUE + if asked { rpcs::SACCT } else { 0 }
    }

    fn is_rate_limited(&self, answer: &PollAnswer) -> bool {
        matches!(&answer.squeue, SqueueOutcome::Failed(failure) if failure.is_rate_limited())
    }

    fn parse(&self, raw: &RawOutput) -> Result<Self::Output, ParseError> {
        let answer = Answer::read(Self::NAME, raw)?;
        let labels: Vec<String> = self.jobs.iter().map(Watched::label).collect();
        let keys: Vec<&str> = labels.iter().map(String::as_str).collect();
        let mut reader = Reader::new(self);
        for line in answer.lines() {
            reader.line(line, &keys)?;
        }
        let markers = keys.iter().enumerate();
        let markers =
            markers.filter_map(|(i, key)| Some(((*key).to_owned(), reader.markers.take(i)?))).collect();
        let (status, left_out) = reader.status.finish().map_err(|reason| answer.lacks(reason))?;
        Ok(PollAnswer {
            remote_time: reader.remote_time.ok_or_else(|| answer.lacks("the time"))?,
            squeue: reader.squeue.ok_or_else(|| answer.lacks("the queue"))?,
            sacct: reader.sacct.ok_or_else(|| answer.lacks("the accounting"))?,
            status,
            markers,
            signs_of_life: reader
                .signs
                .into_iter()
                .map(|(index, signs)| (keys[index].to_owned(), signs))
                .collect(),
            reports: reader
                .reports
                .reports
                .into_iter()
                .map(|(index, reports)| (keys[index].to_owned(), reports))
                .collect(),
            arrays: reader.arrays.finish(),
            dropped_rows: reader.dropped + left_out.len(),
        })
    }

    fn subjects(&self, _: Option<&PollAnswer>) -> Vec<(Subject, Option<String>)> {
        vec![(Subject::Cluster, None)]
    }

    fn jobs(&self) -> usize {
        self.jobs.len()
    }
}

#[derive(Default)]
struct Reader<'a> {
    /// Several names if an id was given again.
    names: HashMap<SlurmJobId, Vec<&'a str>>,
    remote_time: Option<i64>,
    squeue: Option<SqueueOutcome>,
    sacct: Option<SacctOutcome>,
    status: StatusReader,
    markers: MarkerReader,
    signs: HashMap<usize, SignsOfLife>,
    reports: ReportReader,
    arrays: ArrayReader<'a>,
    dropped: usize,
}

impl<'a> Reader<'a> {
    fn new(poll: &'a Poll) -> Self {
        let mut names: HashMap<SlurmJobId, Vec<&str>> = HashMap::new();
        for job in poll.jobs.iter().filter(|job| job.index.is_none()) {
            names.entry(job.id).or_default().push(job.key.as_str());
        }
        Self { names, arrays: ArrayReader::new(poll), ..Self::default() }
    }

    fn line(&mut self, mut line: Line<'_>, keys: &[&str]) -> Result<(), ParseError> {
        match line.tag {
            b"TIME" => self.remote_time = Some(line.value()?),
            b"SQUEUE" => {
                let answered = line.value::<u8>()? == 1;
                let (_, failure) = line.failure()?;
                self.squeue = Some(if answered {
                    SqueueOutcome::Answered(HashMap::new())
                } else {
                    SqueueOutcome::Failed(failure)
                });
            }
            b"SACCT" => {
                let asked = line.value::<u8>()? == 1;
                let (code, failure) = line.failure()?;
                self.sacct = Some(match (asked, code) {
                    (false, _) => SacctOutcome::NotAsked,
                    (true, _) if failure.is_accounting_disabled() => SacctOutcome::Disabled,
                    (true, 0) => SacctOutcome::Answered(HashMap::new()),
                    (true, _) => SacctOutcome::Failed(failure),
                });
            }
            b"ROW" => self.queue_row(&line),
            b"ARRAY" => self.arrays.row(&line.rest()),
            b"RECORD" => self.record(&line),
            b"ALIVE" => {
                let index = line.index(keys.len())?;
                match signs_of_life(line) {
                    Some(signs) => {
                        self.signs.insert(index, signs);
                    }
                    None => self.dropped += 1,
                }
            }
            b"SERVICES" => self.reports.services(line, keys.len())?,
            b"USAGE" => self.reports.usage(line, keys.len())?,
            b"PROGRESS" => self.reports.progress(line, keys.len())?,
            b"CLAIM" => self.markers.claim(line, keys.len())?,
            b"MARK" => self.markers.mark(line, keys.len())?,
            b"FILE" => self.status.file(line, keys)?,
            b"DATA" => self.status.data(line)?,
            b"BYTES" => self.status.bytes(line)?,
            _ => return Err(line.malformed("an unknown kind of line")),
        }
        Ok(())
    }

    fn queue_row(&mut self, line: &Line<'_>) {
        let Some(row) = QueueRow::read(&line.rest()) else {
            self.dropped += 1;
            return;
        };
        if let Some(SqueueOutcome::Answered(rows)) = &mut self.squeue {
            rows.insert(row.id, row);
        }
    }

    fn record(&mut self, line: &Line<'_>) {
        let text = line.rest();
        if self.arrays.record(&text) {
            return;
        }
        let Some(mut row) = AccountingRow::read(&text) else {
            self.dropped += 1;
            return;
        };
        // Also skips `allocation`, the name of an incomplete record (22.05).
        let ours = self.names.get(&row.id).is_some_and(|names| names.contains(&row.name.as_str()));
        if ours && let Some(SacctOutcome::Answered(rows)) = &mut self.sacct {
            // The rows of its runs come in order.
            row.before = rows.get(&row.id).map(AccountingRow::as_past_run);
            rows.insert(row.id, row);
        }
    }
}

/// A job can set any time and size for its files, so sums that are not numbers are skipped.
fn signs_of_life(mut line: Line<'_>) -> Option<SignsOfLife> {
    Some(SignsOfLife { files: line.value().ok()?, bytes: line.value().ok()?, newest: line.value().ok()? })
}

#[cfg(test)]
#[path = "poll_tests.rs"]
mod tests;
