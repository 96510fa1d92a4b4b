//! Reading a part of a log.

use std::time::Duration;

use crate::{Call, ParseError, RawOutput, RemoteCommand, RemotePath, answer::Answer, feed::Feed};

const PROGRAM: &str =
    concat!(include_str!("../programs/preamble.sh"), include_str!("../programs/read_log.sh"));

/// A file system that needs longer for a few megabytes is not answering.
const DEADLINE: Duration = Duration::from_secs(30);

/// Reads a part of one log. Costs the bytes it returns, not the length of the log.
#[derive(Debug, Clone)]
pub struct ReadLog {
    /// Where the log may be: the first that exists is read.
    pub paths: Vec<RemotePath>,
    /// Which part.
    pub from: LogFrom,
    /// At most so many bytes; of a tail, the last ones.
    pub max_bytes: u64,
}

/// Which part of a log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LogFrom {
    /// The last so many lines.
    TailLines(u32),
    /// From a byte on; past the end of the log that is nothing.
    Offset {
        /// The first byte.
        offset: u64,
        /// At most so many bytes.
        limit: u64,
    },
}

/// What there is of a log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LogAnswer {
    /// A part of it.
    Chunk(LogChunk),
    /// None of the paths exists (yet).
    Missing,
}

/// A part of a log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LogChunk {
    /// Which of the paths it is.
    pub path: RemotePath,
    /// How long the whole log was, in bytes.
    pub size: u64,
    /// Where `bytes` begins; the next part begins at `start` plus their number.
    pub start: u64,
    /// What stands there.
    pub bytes: Vec<u8>,
}

impl RemoteCommand for ReadLog {
    type Output = LogAnswer;

    fn render(&self) -> Call {
        let mut feed = Feed::new();
        feed.field(self.paths.len());
        // The far side counts in signed 64 bits.
        let number = |value: u64| value.min(i64::MAX.unsigned_abs());
        let limit = match self.from {
            LogFrom::TailLines(lines) => {
                feed.field("lines").field(lines);
                self.max_bytes
            }
            LogFrom::Offset { offset, limit } => {
                feed.field("offset").field(number(offset));
                limit.min(self.max_bytes)
            }
        };
        feed.field(number(limit)).end_line();
        for path in &self.paths {
            feed.field(path).end_line();
        }
        let limit = usize::try_from(limit).unwrap_or(usize::MAX);
        Call {
            program: PROGRAM.to_owned(),
            stdin: feed.into_bytes(),
            deadline: DEADLINE,
            stdout_limit: super::encoded(limit).saturating_add(super::STDOUT_BASE),
        }
    }

    fn parse(&self, raw: &RawOutput) -> Result<Self::Output, ParseError> {
        let answer = Answer::read("log", raw)?;
        let mut lines = answer.lines();
        let mut first = lines.next().ok_or_else(|| answer.lacks("nothing about the log"))?;
        match first.tag {
            b"MISSING" => Ok(LogAnswer::Missing),
            b"LOG" => {
                let index = first.index(self.paths.len())?;
                let (size, start) = (first.value()?, first.value()?);
                let mut data = lines.next().ok_or_else(|| answer.lacks("a log without its bytes"))?;
                let bytes = data.blob()?;
                Ok(LogAnswer::Chunk(LogChunk { path: self.paths[index].clone(), size, start, bytes }))
            }
            _ => Err(first.malformed("an unknown kind of line")),
        }
    }
}
