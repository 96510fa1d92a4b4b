//! Reads one framed stream, piece by piece as it arrives.

use super::{Boundary, begin_mark, end_mark};

/// The longest text between the end mark and the newline that completes it.
const LONGEST_ENDING: usize = 16;
/// How far a cut stream may grow beyond its limit before the surplus is thrown away.
const SLACK: usize = 64 * 1024;

/// How the program ended, as the end mark says it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Ending {
    /// With this code.
    Exited(i32),
    /// The remote `timeout` ended it.
    TimedOut,
    /// There is no `timeout` command over there, so the program was not started.
    NoTimeoutCommand,
}

/// What happens to a stream that is longer than its limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Excess {
    /// It is an error.
    Refused,
    /// The rest is dropped.
    Cut,
}

/// Why a stream is not an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum FrameError {
    /// It ended before the begin mark.
    NotBegun,
    /// It ended before the end mark.
    NotEnded,
    /// The end mark is followed by something that is not an ending.
    Garbled,
    /// The body is longer than the limit.
    TooLarge,
}

/// A stream of which all bytes so far have been seen once.
pub(crate) struct FrameReader {
    begin: Vec<u8>,
    end: Vec<u8>,
    limit: usize,
    excess: Excess,
    begun: bool,
    /// Before the begin mark: the last few bytes, which may hold its first part. After it: the body.
    buffer: Vec<u8>,
    /// Where the search for the end mark goes on.
    searched: usize,
    ended: Option<(usize, Ending)>,
}

impl FrameReader {
    pub(crate) fn new(boundary: Boundary, limit: usize, excess: Excess) -> Self {
        Self {
            begin: begin_mark(boundary),
            end: end_mark(boundary),
            limit,
            excess,
            begun: false,
            buffer: Vec::new(),
            searched: 0,
            ended: None,
        }
    }

    /// Whether the end mark has come; what follows it is noise.
    pub(crate) fn is_complete(&self) -> bool {
        self.ended.is_some()
    }

    /// Takes the next bytes of the stream.
    pub(crate) fn push(&mut self, bytes: &[u8]) -> Result<(), FrameError> {
        if self.is_complete() {
            return Ok(());
        }
        self.buffer.extend_from_slice(bytes);
        if !self.begun && !self.skip_noise() {
            return Ok(());
        }
        self.look_for_end()
    }

    /// The body and the ending, if the stream was whole.
    pub(crate) fn finish(mut self) -> Result<(Vec<u8>, Ending), FrameError> {
        let (length, ending) = self.ended.ok_or(self.missing())?;
        self.buffer.truncate(length);
        Ok((self.buffer, ending))
    }

    /// The body as far as it came, for a stream whose end mark is not what decides.
    pub(crate) fn into_body(mut self) -> Vec<u8> {
        if !self.begun {
            return Vec::new();
        }
        let length = self.ended.map_or(self.buffer.len(), |(length, _)| length);
        self.buffer.truncate(length.min(self.limit));
        self.buffer
    }

    fn missing(&self) -> FrameError {
        if self.begun { FrameError::NotEnded } else { FrameError::NotBegun }
    }

    fn skip_noise(&mut self) -> bool {
        if let Some(at) = find(&self.buffer, &self.begin) {
            self.buffer.drain(..at + self.begin.len());
            self.begun = true;
        } else {
            let surplus = self.buffer.len().saturating_sub(self.begin.len() - 1);
            self.buffer.drain(..surplus);
        }
        self.begun
    }

    fn look_for_end(&mut self) -> Result<(), FrameError> {
        let Some(at) = find(&self.buffer[self.searched..], &self.end).map(|at| at + self.searched) else {
            self.searched = self.buffer.len().saturating_sub(self.end.len() - 1);
            return self.bound();
        };
        // The mark is there, perhaps not all of what follows it: the next search begins at the mark.
        self.searched = at;
        let rest = &self.buffer[at + self.end.len()..];
        let Some(length) = rest.iter().take(LONGEST_ENDING).position(|byte| *byte == b'\n') else {
            return if rest.len() < LONGEST_ENDING { Ok(()) } else { Err(FrameError::Garbled) };
        };
        let ending = ending(&rest[..length]).ok_or(FrameError::Garbled)?;
        if at > self.limit && self.excess == Excess::Refused {
            return Err(FrameError::TooLarge);
        }
        self.ended = Some((at.min(self.limit), ending));
        Ok(())
    }

    /// Keeps the memory bounded while the end mark has not come.
    fn bound(&mut self) -> Result<(), FrameError> {
        // The last bytes may be the first part of the end mark and do not count yet.
        let body = self.searched;
        match self.excess {
            Excess::Refused if body > self.limit => Err(FrameError::TooLarge),
            Excess::Cut if body > self.limit.saturating_add(SLACK) => {
                self.buffer.drain(self.limit..body);
                self.searched = self.limit;
                Ok(())
            }
            Excess::Refused | Excess::Cut => Ok(()),
        }
    }
}

fn ending(text: &[u8]) -> Option<Ending> {
    match text {
        b"timeout" => Some(Ending::TimedOut),
        b"missing" => Some(Ending::NoTimeoutCommand),
        digits => {
            let code: u8 = std::str::from_utf8(digits).ok()?.parse().ok()?;
            Some(Ending::Exited(i32::from(code)))
        }
    }
}

/// The first position of `needle`. Both marks have a rare first byte, so the scan is for that byte.
fn find(haystack: &[u8], needle: &[u8]) -> Option<usize> {
    let (first, _) = needle.split_first()?;
    let mut from = 0;
    while let Some(at) = haystack[from..].iter().position(|byte| byte == first) {
        let start = from + at;
        if haystack[start..].starts_with(needle) {
            return Some(start);
        }
        from = start + 1;
    }
    None
}
