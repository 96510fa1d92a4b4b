//! Collects exit records, logs and status files of jobs that have ended.

use std::time::Duration;

use crate::{
    AttemptKey, Call, ParseError, RawOutput, RemoteCommand, Repeat, Subject,
    answer::{Answer, Parts},
    commands::{
        error_lines::LogErrors,
        markers::{MarkerReader, Markers},
        results::{PartFound, PartReader, RESULT_BYTES_TOTAL, ResultPart, answer_bytes, ask},
        status::{StatusChunk, StatusCursor, StatusReader},
    },
    stdin_writer::StdinWriter,
    subject::subjects,
};
use slurm::{ComponentName, RemotePath, SlurmJobId};

const PROGRAM: &str =
    program!("preamble", "state_dirs", "status_files", "remove_file", "results", "error_lines", "conclude");

/// 46 s for the logs; 44 s for the search for errors; 35 s, 30 s and 25 s for the three searches, and 26 s more for each that must search job by job; 36 s
/// for the markers; 23 s for notes; 46 s for results; 6 s for a last check of the directories; and some for reading.
const DEADLINE: Duration = Duration::from_secs(401);

/// The most bytes of one status file in an answer.
pub const STATUS_BYTES: usize = 4 * 1024 * 1024;

/// The most bytes of the logs of a job's roles together.
const ROLE_BYTES: usize = 128 * 1024;

/// The most bytes of the lines of a job that look like errors, in up to 32 logs. With 64 logs it is twice as much.
const ERROR_BYTES: usize = 96 * 1024;
/// So much of each log is searched for them from its start, and an eighth of that from its end: a second for most logs.
const ERRORS_READ: usize = 128 * 1024 * 1024;

/// Collects what ended jobs have left, then removes their files with secrets.
#[derive(Debug, Clone)]
pub struct Conclude {
    /// The jobs.
    pub jobs: Vec<Concluding>,
    /// The most bytes from the end of each log.
    pub tail_bytes: usize,
    /// The most bytes of all status files together. A chunk that is not complete continues in the next call.
    pub status_bytes_total: usize,
}

/// A job that has ended.
#[derive(Debug, Clone)]
pub struct Concluding {
    /// The attempt.
    pub key: AttemptKey,
    /// Its id, if it has one. Nothing is removed while another Slurm job holds the attempt, because that job runs. If Slurm
    /// starts this job again after this call, its script stops at once.
    pub id: Option<SlurmJobId>,
    /// Where its markers are.
    pub state_dir: RemotePath,
    /// Where its logs may be; the first that exists counts for each stream. A path that ends in `.out` or `.err` is a
    /// log; any other is a directory with `main.out` and `main.err`. The state directory is always tried last.
    pub logs: Vec<RemotePath>,
    /// Where its status files are.
    pub results_dir: RemotePath,
    /// How far each status file has been read.
    pub status: Vec<StatusCursor>,
    /// If more bytes of a status file are unread, only its end is read.
    pub status_backlog: u64,
    /// The directory with a subdirectory of logs for each component of a job that has several.
    pub role_logs: Option<RemotePath>,
    /// What its results are found in, each once. A file must be in the results directory.
    pub results: Vec<ResultPart>,
    /// The files to remove after everything else is read.
    pub remove: Vec<RemotePath>,
    /// A task to which Slurm has never given nodes: without a state directory there is nothing to read.
    pub is_bare: bool,
    /// Whether its logs are searched for lines that look like errors: it may have failed.
    pub may_have_failed: bool,
}

/// What a job has left. A missing part means nothing unless `readable` is true.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Concluded {
    /// The attempt's name in Slurm.
    pub key: String,
    /// Its markers.
    pub markers: Markers,
    /// The unread part of its status files, at most one chunk of each. A chunk that is not complete continues in the next
    /// call.
    pub status: Vec<StatusChunk>,
    /// The end of its standard output.
    pub out_tail: Vec<u8>,
    /// The end of its standard error.
    pub err_tail: Vec<u8>,
    /// The ends of the logs of its roles, one after the other.
    pub role_tails: Vec<u8>,
    /// The component with which it ended, by its exit record.
    pub ended_with: Option<EndedWith>,
    /// The lines of its logs that look like errors; empty if they were not searched, or not in time.
    pub errors: Vec<LogErrors>,
    /// What was found of each of its [`results`](Concluding::results); `None` if that is left for the next call.
    pub results: Option<Vec<PartFound>>,
    /// Whether the files to remove are certainly gone. False while another job holds the attempt, or while the directory of
    /// a file is missing: it may come back with the file.
    pub removed: bool,
    /// Whether everything could be read: the state directory was there, and no search and no read of this job's files
    /// failed or timed out. If not, retry. A job can make its own files unreadable, so do not retry without end.
    pub readable: bool,
    /// Whether a status file was left out: its path is not a valid [`RemotePath`], or its size or time is not a number.
    pub left_out: bool,
}

/// The step or service with which a job of several ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EndedWith {
    /// Whether it is a service.
    pub is_service: bool,
    /// Its name.
    pub name: ComponentName,
    /// What it did, such as `has ended with code 9`, without control characters.
    pub what: String,
    /// The end of the standard output of its first process, at most 4 KiB.
    pub out_tail: Vec<u8>,
    /// The end of its standard error.
    pub err_tail: Vec<u8>,
}

impl EndedWith {
    /// The exit record says: `service` or `step`, the name, and what it did.
    fn read(why: &[u8], out_tail: Vec<u8>, err_tail: Vec<u8>) -> Option<Self> {
        let why = String::from_utf8_lossy(why);
        let mut words = why.splitn(3, ' ');
        let is_service = match words.next()? {
            "service" => true,
            "step" => false,
            _ => return None,
        };
        let name = words.next()?.parse().ok()?;
        let what = words.next()?.chars().filter(|char| !char.is_control()).collect();
        Some(Self { is_service, name, what, out_tail, err_tail })
    }
}

impl Concluding {
    fn candidates(&self, extension: &str) -> Vec<RemotePath> {
        let main = format!("main.{extension}");
        let other = if extension == "out" { ".err" } else { ".out" };
        let own = format!(".{extension}");
        let places = self.logs.iter().chain(std::iter::once(&self.state_dir));
        places
            .filter_map(|place| match place.file_name() {
                name if name.ends_with(&own) => Some(place.clone()),
                name if name.ends_with(other) => None,
                _ => place.join(&main).ok(),
            })
            .collect()
    }
}

impl RemoteCommand for Conclude {
    type Output = Vec<Concluded>;

    const NAME: &'static str = "conclude";
    const REPEAT: Repeat = Repeat::Safe;

    fn render(&self) -> Call {
        let mut stdin = StdinWriter::default();
        stdin
            .field(self.jobs.len())
            .field(self.tail_bytes)
            .field(STATUS_BYTES)
            .field(self.status_bytes_total)
            .field(RESULT_BYTES_TOTAL)
            .field(ERROR_BYTES)
            .field(ERRORS_READ)
            .end_line();
        for (index, job) in self.jobs.iter().enumerate() {
            let (outs, errs) = (job.candidates("out"), job.candidates("err"));
            stdin
                .field(index)
                .id_or_absent(job.id)
                .field(&job.state_dir)
                .field(&job.results_dir)
                .field(job.status_backlog)
                .path_or_absent(job.role_logs.as_ref())
                .field(job.status.len())
                .field(outs.len())
                .field(errs.len())
                .field(job.remove.len())
                .field(job.results.len())
                .field(u8::from(job.is_bare))
                .field(u8::from(job.may_have_failed))
                .end_line();
            stdin.cursors(index, &job.status);
            stdin.rows(outs.iter().chain(&errs).chain(&job.remove));
            ask(&mut stdin, &job.results);
        }
        let per_job = super::encoded(self.tail_bytes).saturating_mul(2).saturating_add(28 * 1024);
        let parts = self.jobs.iter().map(|job| job.results.len()).sum();
        let with_roles = self.jobs.iter().filter(|job| job.role_logs.is_some()).count();
        let searched = self.jobs.iter().filter(|job| job.may_have_failed).count();
        stdin.call(
            PROGRAM,
            DEADLINE,
            per_job
                .saturating_mul(self.jobs.len())
                .saturating_add(super::encoded(ROLE_BYTES).saturating_mul(with_roles))
                .saturating_add(super::encoded(ERROR_BYTES * 2 + 8 * 1024).saturating_mul(searched))
                .saturating_add(super::encoded(self.status_bytes_total))
                .saturating_add(answer_bytes(parts))
                .saturating_add(super::STDOUT_BASE),
        )
    }

    fn rpcs(&self) -> u32 {
        0
    }

    fn parse(&self, raw: &RawOutput) -> Result<Self::Output, ParseError> {
        let answer = Answer::read(Self::NAME, raw)?;
        let count = self.jobs.len();
        // By index, because two jobs may have the same key.
        let indices: Vec<String> = (0..count).map(|index| index.to_string()).collect();
        let indices: Vec<&str> = indices.iter().map(String::as_str).collect();
        let (mut markers, mut status) = (MarkerReader::default(), StatusReader::default());
        let mut tails: Vec<Option<[usize; 7]>> = vec![None; count];
        let mut ends = Parts::default();
        let mut parts = PartReader::new(count);
        let mut removed = vec![true; count];
        let mut readable = vec![true; count];
        for mut line in answer.lines() {
            match line.tag {
                b"CLAIM" => markers.claim(line, count)?,
                b"MARK" => markers.mark(line, count)?,
                b"FILE" => status.file(line, &indices)?,
                b"DATA" => status.data(line)?,
                b"BYTES" => status.bytes(line)?,
                b"TAIL" => {
                    let index = line.index(count)?;
                    let mut tail = [0; 7];
                    for length in &mut tail {
                        *length = line.value()?;
                    }
                    tails[index] = Some(tail);
                }
                b"TAILS" => ends = Parts::new(line.blob()?),
                b"PART" => parts.part(line, count)?,
                b"PARTS" => parts.bytes(line)?,
                b"LATER" => parts.later(line, count)?,
                b"KEPT" => removed[line.index(count)?] = false,
                b"UNREAD" => readable[line.index(count)?] = false,
                _ => return Err(line.malformed("an unknown kind of line")),
            }
        }
        let (mut chunks, left_out) = status.finish().map_err(|reason| answer.lacks(reason))?;
        let asked = self.jobs.iter().map(|job| job.results.len());
        let mut parts = parts.finish(asked).map_err(|reason| answer.lacks(reason))?.into_iter();
        let mut concluded = Vec::with_capacity(count);
        for (index, (job, tail)) in self.jobs.iter().zip(tails).enumerate() {
            let tail = tail.ok_or_else(|| answer.lacks("the end of a log"))?;
            let mut end =
                |length| ends.take(length).map(<[u8]>::to_vec).map_err(|reason| answer.lacks(reason));
            let (out_tail, err_tail, role_tails) = (end(tail[0])?, end(tail[1])?, end(tail[2])?);
            let ended_with = EndedWith::read(&end(tail[3])?, end(tail[4])?, end(tail[5])?);
            let errors = LogErrors::read(&end(tail[6])?);
            let mut own: Vec<_> = chunks.extract_if(.., |chunk| chunk.key == indices[index]).collect();
            for chunk in &mut own {
                job.key.as_str().clone_into(&mut chunk.key);
            }
            concluded.push(Concluded {
                key: job.key.as_str().to_owned(),
                markers: markers.take(index).unwrap_or_default(),
                status: own,
                out_tail,
                err_tail,
                role_tails,
                ended_with,
                errors,
                results: parts.next().flatten(),
                removed: removed[index],
                readable: readable[index],
                left_out: left_out.iter().any(|key| key == indices[index]),
            });
        }
        ends.finish().map_err(|reason| answer.lacks(reason))?;
        Ok(concluded)
    }

    fn subjects(&self, answer: Option<&Vec<Concluded>>) -> Vec<(Subject, Option<String>)> {
        subjects(self.jobs.iter().map(|job| job.key.subject.clone()), |place| {
            let concluded = answer?.get(place)?;
            let words = match (concluded.readable, concluded.removed) {
                (true, true) => "read, files with secrets are gone",
                (true, false) => "read, files with secrets remain",
                (false, _) => "not all could be read",
            };
            Some(words.to_owned())
        })
    }
}
