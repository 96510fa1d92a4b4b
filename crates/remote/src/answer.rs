//! The answer of a program: lines, then `END <number of lines before it>`.
//!
//! A program that cannot continue prints `FAIL <base64 of the reason>` before that.

use std::{borrow::Cow, str::FromStr};

use base64::{Engine, engine::general_purpose::STANDARD};

use crate::{ParseError, RawOutput};
use slurm::{Failure, failure};

/// A complete answer, without its last line.
pub(crate) struct Answer<'a> {
    command: &'static str,
    lines: Vec<&'a [u8]>,
}

/// One line of an answer: a tag, and the rest.
#[derive(Clone, Copy)]
pub(crate) struct Line<'a> {
    command: &'static str,
    number: usize,
    pub(crate) tag: &'a [u8],
    rest: &'a [u8],
}

impl<'a> Answer<'a> {
    pub(crate) fn read(command: &'static str, raw: &'a RawOutput) -> Result<Self, ParseError> {
        let mut lines: Vec<&[u8]> = raw.stdout.split(|byte| *byte == b'\n').collect();
        // After the last newline there is nothing, or a line that was cut off.
        let after_last_newline = lines.pop().unwrap_or_default();
        let end = lines.pop().unwrap_or_default();
        let whole = after_last_newline.is_empty()
            && end.strip_prefix(b"END ").is_some_and(|count| count == lines.len().to_string().as_bytes());
        if !whole {
            return Err(ParseError::Incomplete {
                command,
                exit_code: raw.exit_code,
                lines: lines.len(),
                stderr: failure::classify(&String::from_utf8_lossy(&raw.stderr)).excerpt,
            });
        }
        let answer = Self { command, lines };
        if let Some(mut line) = answer.lines().find(|line| line.tag == b"FAIL") {
            return Err(failure::classify(&line.blob_text()?).into());
        }
        Ok(answer)
    }

    pub(crate) fn lines(&self) -> impl Iterator<Item = Line<'a>> + use<'a, '_> {
        self.lines.iter().enumerate().map(|(index, line)| {
            let (tag, rest) = split_once(line, b' ').unwrap_or((line, b""));
            Line { command: self.command, number: index + 1, tag, rest }
        })
    }

    /// The error for an answer without a required line.
    pub(crate) fn lacks(&self, reason: &'static str) -> ParseError {
        ParseError::Malformed { command: self.command, line: self.lines.len(), reason }
    }
}

impl<'a> Line<'a> {
    pub(crate) fn malformed(&self, reason: &'static str) -> ParseError {
        ParseError::Malformed { command: self.command, line: self.number, reason }
    }

    /// The rest of the line as text. Bytes that are not UTF-8 become replacement characters.
    pub(crate) fn rest(&self) -> Cow<'a, str> {
        String::from_utf8_lossy(self.rest)
    }

    /// The rest of the line, if it is UTF-8.
    pub(crate) fn utf8(&self) -> Option<&'a str> {
        str::from_utf8(self.rest).ok()
    }

    /// Takes the next word.
    pub(crate) fn word(&mut self) -> Result<&'a [u8], ParseError> {
        if self.rest.is_empty() {
            return Err(self.malformed("a word is missing"));
        }
        let (word, rest) = split_once(self.rest, b' ').unwrap_or((self.rest, b""));
        self.rest = rest;
        Ok(word)
    }

    /// Takes the next word, parsed as a `T`.
    pub(crate) fn value<T: FromStr>(&mut self) -> Result<T, ParseError> {
        let word = self.word()?;
        let text = str::from_utf8(word).map_err(|_| self.malformed("a number is not ASCII"))?;
        text.parse().map_err(|_| self.malformed("a number is expected"))
    }

    /// Takes the next word: the index of an item of the question.
    pub(crate) fn index(&mut self, count: usize) -> Result<usize, ParseError> {
        let index: usize = self.value()?;
        if index < count { Ok(index) } else { Err(self.malformed("an index out of range")) }
    }

    /// Takes the next word: base64, or `-` for nothing.
    pub(crate) fn blob(&mut self) -> Result<Vec<u8>, ParseError> {
        let word = self.word()?;
        if word == b"-" {
            return Ok(Vec::new());
        }
        STANDARD.decode(word).map_err(|_| self.malformed("base64 is expected"))
    }

    /// Takes the next word: text in base64, or `-` for nothing.
    pub(crate) fn blob_text(&mut self) -> Result<String, ParseError> {
        self.blob().map(|bytes| String::from_utf8_lossy(&bytes).into_owned())
    }

    /// Takes the next two words: the exit code and stderr of a command that failed.
    pub(crate) fn failure(&mut self) -> Result<(i32, Failure), ParseError> {
        let code = self.value()?;
        let stderr = self.blob_text()?;
        Ok((code, failure::of_exit(code, &stderr)))
    }
}

fn split_once(bytes: &[u8], at: u8) -> Option<(&[u8], &[u8])> {
    let position = bytes.iter().position(|byte| *byte == at)?;
    Some((&bytes[..position], &bytes[position + 1..]))
}

/// Bytes of several owners in one block. Each owner knows its length.
#[derive(Debug, Default)]
pub(crate) struct Parts {
    bytes: Vec<u8>,
    taken: usize,
}

impl Parts {
    pub(crate) fn new(bytes: Vec<u8>) -> Self {
        Self { bytes, taken: 0 }
    }

    /// The next `length` bytes, or the name of what is missing.
    pub(crate) fn take(&mut self, length: usize) -> Result<&[u8], &'static str> {
        let rest = self.bytes.get(self.taken..).unwrap_or_default();
        let part = rest.get(..length).ok_or("all of the bytes that were announced")?;
        self.taken += length;
        Ok(part)
    }

    /// An error if bytes are left over: then the lengths are wrong.
    pub(crate) fn finish(self) -> Result<(), &'static str> {
        if self.taken == self.bytes.len() { Ok(()) } else { Err("an owner for all of its bytes") }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use slurm::FailureClass;

    fn raw(stdout: &[u8]) -> RawOutput {
        RawOutput { stdout: stdout.to_vec(), ..RawOutput::default() }
    }

    #[test]
    fn an_answer_without_its_last_line_is_incomplete() {
        for stdout in
            ["", "OK 0\n", "OK 0\nEND 1", "OK 0\nEND 2\n", "OK 0\nEND 1\nmore\n", "END\n", "OK 0\nEND 01\n"]
        {
            let raw = raw(stdout.as_bytes());
            let error = Answer::read("x", &raw).err().unwrap();
            assert!(matches!(error, ParseError::Incomplete { .. }), "{stdout:?}");
            assert_eq!(error.class(), FailureClass::Ambiguous);
        }
    }

    #[test]
    fn a_program_that_could_not_begin_says_why() {
        let raw = raw(b"FAIL bWt0ZW1wOiBObyBzcGFjZSBsZWZ0IG9uIGRldmljZQ==\nEND 1\n");
        let error = Answer::read("x", &raw).err().unwrap();
        assert_eq!(error.class(), FailureClass::Infra);
        assert_eq!(error.to_string(), "mktemp: No space left on device");
    }

    #[test]
    fn parts_are_taken_in_turn_and_have_to_come_out_even() {
        let mut parts = Parts::new(b"abc".to_vec());
        assert_eq!(parts.take(1), Ok(&b"a"[..]));
        assert_eq!(parts.take(0), Ok(&b""[..]));
        assert!(parts.take(3).is_err() && parts.take(usize::MAX).is_err());
        assert_eq!(parts.take(2), Ok(&b"bc"[..]));
        assert_eq!(parts.finish(), Ok(()));
        assert!(Parts::new(b"abc".to_vec()).finish().is_err());
    }

    proptest! {
        #[test]
        fn no_bytes_make_the_reader_panic(stdout in any::<Vec<u8>>()) {
            let raw = raw(&stdout);
            let _ = Answer::read("x", &raw).map(|answer| answer.lines().count());
        }
    }
}
