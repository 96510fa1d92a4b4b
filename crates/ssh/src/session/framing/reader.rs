//! Reads one framed stream in the pieces in which it arrives.

use memchr::memmem;

use super::{begin_mark, end_mark};

/// The longest text between the end mark and the newline that completes it.
const LONGEST_ENDING: usize = 16;
/// How far a cut stream may grow beyond its limit before the surplus is dropped.
const SLACK: usize = 64 * 1024;

/// How the program ended, according to the end mark.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Ending {
    /// With this exit code.
    Exited(i32),
    /// The remote `timeout` stopped it at its deadline.
    TimedOut,
    /// The login host has no `timeout` command, so the program was not started.
    NoTimeoutCommand,
}

/// What to do with a stream that exceeds its limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Excess {
    /// Fail.
    Refused,
    /// Drop the rest.
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

/// Searches a stream for its marks, each byte once.
pub(crate) struct FrameReader {
    begin: Vec<u8>,
    end: Vec<u8>,
    limit: usize,
    excess: Excess,
    begun: bool,
    /// Before the begin mark: the last few bytes, which may be its first part. After it: the body.
    buffer: Vec<u8>,
    /// Where the search for the end mark continues.
    searched: usize,
    ended: Option<(usize, Ending)>,
}

impl FrameReader {
    pub(crate) fn new(boundary: &str, limit: usize, excess: Excess) -> Self {
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

    /// Whether the end mark has arrived; what follows it is noise.
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

    /// The body and the ending, if the stream was complete.
    pub(crate) fn finish(mut self) -> Result<(Vec<u8>, Ending), FrameError> {
        let missing = if self.begun { FrameError::NotEnded } else { FrameError::NotBegun };
        let (length, ending) = self.ended.ok_or(missing)?;
        self.buffer.truncate(length);
        Ok((self.buffer, ending))
    }

    /// The body as far as it arrived, for a stream whose end mark is not decisive.
    pub(crate) fn into_body(mut self) -> Vec<u8> {
        if !self.begun {
            return Vec::new();
        }
        let length = self.ended.map_or(self.buffer.len(), |(length, _)| length);
        self.buffer.truncate(length.min(self.limit));
        self.buffer
    }

    fn skip_noise(&mut self) -> bool {
        if let Some(at) = memmem::find(&self.buffer, &self.begin) {
            self.buffer.drain(..at + self.begin.len());
            self.begun = true;
        } else {
            let surplus = self.buffer.len().saturating_sub(self.begin.len() - 1);
            self.buffer.drain(..surplus);
        }
        self.begun
    }

    fn look_for_end(&mut self) -> Result<(), FrameError> {
        let Some(at) = memmem::find(&self.buffer[self.searched..], &self.end).map(|at| at + self.searched)
        else {
            self.searched = self.buffer.len().saturating_sub(self.end.len() - 1);
            return self.bound();
        };
        // The mark is here, but the ending after it may be incomplete: the next search starts at the mark.
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

    /// Limits the memory until the end mark arrives.
    fn bound(&mut self) -> Result<(), FrameError> {
        // The last bytes may be the first part of the end mark, so they do not count yet.
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
