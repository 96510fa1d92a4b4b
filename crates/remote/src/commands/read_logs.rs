//! Reads and searches logs, any number of them in one command.

use std::{collections::BTreeSet, time::Duration};

use super::search_logs::{LogPattern, LogSearch, SearchedLog};
use crate::{
    Call, ParseError, RawOutput, RemoteCommand, Repeat, Subject,
    answer::{Answer, Line},
    stdin_writer::StdinWriter,
};
use slurm::RemotePath;

const PROGRAM: &str = program!("preamble", "search_logs", "read_logs");

/// A file system that needs longer for a few megabytes does not answer.
const DEADLINE: Duration = Duration::from_secs(10);
/// A line of the answer without its blob.
const LINE: usize = 128;

/// Reads parts of logs. The cost is the bytes returned, not the length of the logs: for the last lines of a log, it reads
/// at most `max_bytes`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReadLogs {
    /// The questions; the answers come in the same order.
    pub questions: Vec<LogQuestion>,
}

/// One question about the logs of a job.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum LogQuestion {
    /// A part of one log.
    Part {
        /// The attempt.
        subject: Subject,
        /// Where the log may be: the first path that exists is read.
        paths: Vec<RemotePath>,
        /// Which part.
        from: LogFrom,
        /// The most bytes; for lines, the last ones.
        max_bytes: u64,
    },
    /// The logs of tasks in a directory: files named `<number>.out` and `<number>.err`.
    Files {
        /// The attempt.
        subject: Subject,
        /// The directory.
        directory: RemotePath,
        /// The most names.
        most: u32,
    },
    /// A search in some logs. It ends after some seconds and gigabytes, wherever it is then.
    Search {
        /// The attempt.
        subject: Subject,
        /// Where each log may be: the first path that exists is searched.
        logs: Vec<Vec<RemotePath>>,
        /// What is searched for.
        pattern: LogPattern,
        /// The byte at which to begin in each log.
        from: u64,
        /// The most hits in all logs.
        most: u32,
    },
}

/// Where a part of a log begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum LogFrom {
    /// The last lines, so many.
    TailLines(u32),
    /// From this byte on; empty past the end of the log.
    Offset(u64),
}

/// The answer to one [`LogQuestion`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LogAnswer {
    /// A part of a log.
    Chunk(LogChunk),
    /// The names of the logs in the directory, in the shell's order; none when there is no such directory.
    Files(Vec<String>),
    /// No path is a file yet.
    Missing,
    /// The file exists, and the login user may not read it.
    Unreadable,
    /// What the search found in each log, in the order of the question.
    Searched(Vec<SearchedLog>),
    /// The pattern is no regular expression; the reason of `grep`.
    InvalidPattern(String),
}

/// A part of a log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LogChunk {
    /// Which of the paths it is.
    pub path: RemotePath,
    /// The length of the whole log, in bytes.
    pub size: u64,
    /// The inode: another number at the same path is another file.
    pub inode: u64,
    /// Where `bytes` begins; the next part begins at `start` plus their length.
    pub start: u64,
    /// The part of the log.
    pub bytes: Vec<u8>,
}

/// bash counts in signed 64 bits.
fn signed(value: u64) -> u64 {
    value.min(i64::MAX.unsigned_abs())
}

impl LogQuestion {
    fn subject(&self) -> &Subject {
        let (Self::Part { subject, .. } | Self::Files { subject, .. } | Self::Search { subject, .. }) = self;
        subject
    }

    fn stdin(&self, stdin: &mut StdinWriter) {
        match self {
            Self::Part { paths, from, max_bytes, .. } => {
                match from {
                    LogFrom::TailLines(lines) => stdin.field("lines").field(lines),
                    LogFrom::Offset(offset) => stdin.field("offset").field(signed(*offset)),
                };
                stdin.field(signed(*max_bytes)).field(paths.len()).end_line();
                stdin.rows(paths);
            }
            Self::Files { directory, most, .. } => {
                stdin.field("files").field(0).field(most).field(1).end_line();
                stdin.field(directory).end_line();
            }
            Self::Search { logs, pattern, from, most, .. } => {
                stdin.field("search").field(signed(*from)).field(most).field(logs.len()).end_line();
                pattern.stdin(stdin);
                for paths in logs {
                    stdin.field(paths.len()).end_line();
                    stdin.rows(paths);
                }
            }
        }
    }

    /// The most bytes of its answer.
    fn room(&self) -> usize {
        match self {
            Self::Part { max_bytes, .. } => {
                super::encoded(usize::try_from(*max_bytes).unwrap_or(usize::MAX)).saturating_add(LINE)
            }
            Self::Files { most, .. } => usize::try_from(*most).unwrap_or(usize::MAX).saturating_mul(LINE),
            Self::Search { logs, most, .. } => LogSearch::room(logs.len(), *most),
        }
    }
}

/// The answer to one question, as far as it was read.
enum Answering {
    One(Option<LogAnswer>),
    Files(Vec<String>),
    Search(LogSearch),
}

impl Answering {
    fn new(question: &LogQuestion) -> Self {
        match question {
            LogQuestion::Part { .. } => Self::One(None),
            LogQuestion::Files { .. } => Self::Files(Vec::new()),
            LogQuestion::Search { logs, .. } => Self::Search(LogSearch::new(logs.len())),
        }
    }

    /// None if it is incomplete.
    fn whole(self) -> Option<LogAnswer> {
        match self {
            Self::One(answer) => answer,
            Self::Files(names) => Some(LogAnswer::Files(names)),
            Self::Search(search) => Some(match search.whole()? {
                Ok(logs) => LogAnswer::Searched(logs),
                Err(reason) => LogAnswer::InvalidPattern(reason),
            }),
        }
    }
}

impl ReadLogs {
    /// One line of the answer, or two when the first announces bytes.
    fn take<'a>(
        &self,
        mut line: Line<'a>,
        mut rest: impl Iterator<Item = Line<'a>>,
        answers: &mut [Answering],
    ) -> Result<(), ParseError> {
        let index = line.index(self.questions.len())?;
        let (known, answer) = match (line.tag, &self.questions[index], &mut answers[index]) {
            (b"MISSING", LogQuestion::Part { .. }, Answering::One(known)) => (known, LogAnswer::Missing),
            (b"UNREADABLE", LogQuestion::Part { .. }, Answering::One(known)) => {
                (known, LogAnswer::Unreadable)
            }
            (b"LOG", LogQuestion::Part { paths, .. }, Answering::One(known)) => {
                let mut words = line;
                let path = paths[words.index(paths.len())?].clone();
                let (size, inode, start) = (words.value()?, words.value()?, words.value()?);
                let mut data = rest.next().ok_or_else(|| line.malformed("a log without its bytes"))?;
                if data.tag != b"DATA" {
                    return Err(data.malformed("the bytes of a log are expected"));
                }
                (known, LogAnswer::Chunk(LogChunk { path, size, inode, start, bytes: data.blob()? }))
            }
            (b"FILE", _, Answering::Files(names)) => {
                names.push(line.rest().into_owned());
                return Ok(());
            }
            (_, LogQuestion::Search { logs, .. }, Answering::Search(search)) => {
                return search.take(line, logs);
            }
            _ => return Err(line.malformed("an unknown kind of line")),
        };
        let is_second = known.replace(answer).is_some();
        if is_second { Err(line.malformed("a second answer to one question")) } else { Ok(()) }
    }
}

impl RemoteCommand for ReadLogs {
    type Output = Vec<LogAnswer>;

    const NAME: &'static str = "read_logs";
    const REPEAT: Repeat = Repeat::Safe;

    fn render(&self) -> Call {
        let mut stdin = StdinWriter::default();
        stdin.field(self.questions.len()).end_line();
        self.questions.iter().for_each(|question| question.stdin(&mut stdin));
        let rooms = self.questions.iter().map(LogQuestion::room);
        stdin.call(PROGRAM, DEADLINE, rooms.fold(super::STDOUT_BASE, usize::saturating_add))
    }

    fn rpcs(&self) -> u32 {
        0
    }

    fn parse(&self, raw: &RawOutput) -> Result<Self::Output, ParseError> {
        let answer = Answer::read(Self::NAME, raw)?;
        let mut answers: Vec<_> = self.questions.iter().map(Answering::new).collect();
        let mut lines = answer.lines();
        while let Some(line) = lines.next() {
            self.take(line, &mut lines, &mut answers)?;
        }
        let all: Option<Vec<_>> = answers.into_iter().map(Answering::whole).collect();
        all.ok_or_else(|| answer.lacks("the answer to a question"))
    }

    fn subjects(&self, _: Option<&Vec<LogAnswer>>) -> Vec<(Subject, Option<String>)> {
        let subjects: BTreeSet<_> = self.questions.iter().map(LogQuestion::subject).collect();
        subjects.into_iter().map(|subject| (subject.clone(), None)).collect()
    }
}
