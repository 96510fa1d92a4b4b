//! What the results of a job are found in: files, lines of logs, and the ends of logs.

use std::fmt;

use crate::{
    ParseError,
    answer::{Line, Parts},
    stdin_writer::StdinWriter,
};
use slurm::RemotePath;

/// The most bytes of all files of a job, and of the end of a log.
pub const RESULT_BYTES: usize = 1024 * 1024;

/// The most bytes of all parts in an answer. It is more than one job can have, with 50 lines of 65 KiB, the ends of both logs and
/// its files: `results.sh` has the limits of each.
pub(crate) const RESULT_BYTES_TOTAL: usize = 16 * 1024 * 1024;

/// Something to read of a job that has ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ResultPart {
    /// A file in its results directory.
    File(RemotePath),
    /// The last line of a log that begins with a text without control characters.
    Line {
        /// The log.
        log: JobLog,
        /// The text.
        prefix: String,
    },
    /// The last MiB of a log.
    Tail(JobLog),
}

/// A log of a job.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum JobLog {
    /// The standard output of the batch script.
    Out,
    /// Its standard error.
    Err,
    /// That of one of its programs.
    File(RemotePath),
}

/// What was found of a part.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PartFound {
    /// Its bytes. A line has at most 65 KiB, and the end of a longer log one byte more than a MiB.
    Bytes(Vec<u8>),
    /// The file, the log or the line does not exist.
    Missing,
    /// It is no regular file in the results directory.
    Odd,
    /// It is larger than the rest of the limit for all files of the job.
    Large,
    /// The file system denies it.
    Unreadable,
}

impl fmt::Display for JobLog {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Out => f.write_str("out"),
            Self::Err => f.write_str("err"),
            Self::File(path) => path.fmt(f),
        }
    }
}

/// Adds a line for each part.
pub(crate) fn ask(stdin: &mut StdinWriter, parts: &[ResultPart]) {
    for part in parts {
        match part {
            ResultPart::File(path) => stdin.field("file").field(path),
            ResultPart::Line { log, prefix } => stdin.field("line").field(log).field(pattern(prefix)),
            ResultPart::Tail(log) => stdin.field("tail").field(log),
        };
        stdin.end_line();
    }
}

/// A basic regular expression for lines that begin with the text.
fn pattern(prefix: &str) -> String {
    let mut pattern = "^".to_owned();
    for letter in prefix.chars() {
        if matches!(letter, '\\' | '.' | '[' | '*' | '^' | '$') {
            pattern.push('\\');
        }
        pattern.push(letter);
    }
    pattern
}

/// The size of so many parts in an answer.
pub(crate) fn answer_bytes(parts: usize) -> usize {
    if parts == 0 { 0 } else { super::encoded(RESULT_BYTES_TOTAL).saturating_add(parts.saturating_mul(64)) }
}

/// Reads the parts of an answer.
#[derive(Debug)]
pub(crate) struct PartReader {
    /// For each job: a word and a size for each part that was announced; none if it is left for the next call.
    told: Vec<Option<Vec<(PartFound, usize)>>>,
    /// The order in which their bytes come.
    order: Vec<(usize, usize)>,
    bytes: Parts,
}

impl PartReader {
    pub(crate) fn new(jobs: usize) -> Self {
        Self { told: vec![Some(Vec::new()); jobs], order: Vec::new(), bytes: Parts::default() }
    }

    pub(crate) fn part(&mut self, mut line: Line<'_>, count: usize) -> Result<(), ParseError> {
        let (index, place): (_, usize) = (line.index(count)?, line.value()?);
        let found = match line.word()? {
            b"found" => PartFound::Bytes(Vec::new()),
            b"missing" => PartFound::Missing,
            b"odd" => PartFound::Odd,
            b"large" => PartFound::Large,
            b"unreadable" => PartFound::Unreadable,
            _ => return Err(line.malformed("an unknown word for a part")),
        };
        let told = self.told[index].get_or_insert_default();
        if told.len() != place {
            return Err(line.malformed("a part out of order"));
        }
        told.push((found, line.value()?));
        self.order.push((index, place));
        Ok(())
    }

    pub(crate) fn later(&mut self, mut line: Line<'_>, count: usize) -> Result<(), ParseError> {
        self.told[line.index(count)?] = None;
        Ok(())
    }

    pub(crate) fn bytes(&mut self, mut line: Line<'_>) -> Result<(), ParseError> {
        self.bytes = Parts::new(line.blob()?);
        Ok(())
    }

    /// The parts of each job, or the name of what is missing. `asked`: how many were asked of each.
    pub(crate) fn finish(
        mut self,
        asked: impl Iterator<Item = usize>,
    ) -> Result<Vec<Option<Vec<PartFound>>>, &'static str> {
        for (index, place) in self.order {
            let Some((found, size)) = self.told[index].as_mut().and_then(|told| told.get_mut(place)) else {
                continue;
            };
            let bytes = self.bytes.take(*size)?;
            if let PartFound::Bytes(own) = found {
                bytes.clone_into(own);
            }
        }
        self.bytes.finish()?;
        let told = self.told.into_iter().zip(asked).map(|(told, asked)| match told {
            Some(told) if told.len() == asked => Ok(Some(told.into_iter().map(|(found, _)| found).collect())),
            Some(_) => Err("all parts of the results"),
            None => Ok(None),
        });
        told.collect()
    }
}
