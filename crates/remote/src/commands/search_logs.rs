//! The search in logs: the pattern, and the answer as the program prints it.

use slurm::{RemotePath, text_type};

use crate::{ParseError, answer::Line, stdin_writer::StdinWriter};

/// The most characters of a pattern.
const MOST_CHARACTERS: usize = 500;
/// The most bytes around a hit.
const WINDOW: usize = 1800;
/// A line of the answer without its blob.
const LINE: usize = 128;

/// What is searched for: one line of text, not empty, at most 500 characters.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct SearchText(String);

text_type!(SearchText, InvalidSearchText);

/// A text that no line can contain, or that is too long.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("not a text of one line with 1 to 500 characters")]
pub struct InvalidSearchText;

impl SearchText {
    fn check(text: &str) -> Result<String, InvalidSearchText> {
        let is_line = !text.is_empty() && !text.contains(['\n', '\r', '\0']);
        let is_short = text.chars().nth(MOST_CHARACTERS).is_none();
        if is_line && is_short { Ok(text.to_owned()) } else { Err(InvalidSearchText) }
    }
}

/// What is searched for, and how.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct LogPattern {
    /// The text, or the expression.
    pub text: SearchText,
    /// It is a POSIX extended regular expression.
    pub is_expression: bool,
    /// Small and capital letters are the same. Only those of ASCII.
    pub ignores_case: bool,
}

impl LogPattern {
    /// Two lines. The pattern is data of the program, never a part of it and no argument of a command.
    pub(super) fn stdin(&self, stdin: &mut StdinWriter) {
        let kind = if self.is_expression { "expression" } else { "text" };
        let case = if self.ignores_case { " any-case" } else { "" };
        stdin.field(format_args!("{kind}{case}")).end_line();
        stdin.field(&self.text).end_line();
    }
}

/// What became of one log of a search.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SearchedLog {
    /// No path is a file.
    Missing,
    /// The login user may not read it.
    Unreadable,
    /// It was searched.
    Read(LogFinds),
}

/// The hits in one log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LogFinds {
    /// Which of the paths it is.
    pub path: RemotePath,
    /// The length of the log when its search began, in bytes.
    pub size: u64,
    /// Where the search stopped; less than `size` if it had to.
    pub to: u64,
    /// In the order of the log.
    pub hits: Vec<LogHit>,
}

/// A match. Matches in the same line that are near the one before are left out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LogHit {
    /// Where it begins, in bytes of the log.
    pub offset: u64,
    /// Its bytes, at most about 1,000.
    pub length: u64,
    /// Where `window` begins.
    pub start: u64,
    /// The bytes around it, of this line and of others.
    pub window: Vec<u8>,
}

/// The answer to a search, as far as it was read.
pub(super) struct LogSearch {
    /// The hits of each log, and the log once it is finished.
    logs: Vec<(Vec<LogHit>, Option<SearchedLog>)>,
    invalid: Option<String>,
}

impl LogSearch {
    pub(super) fn new(logs: usize) -> Self {
        Self { logs: vec![(Vec::new(), None); logs], invalid: None }
    }

    /// The most bytes of an answer.
    pub(super) fn room(logs: usize, most: u32) -> usize {
        let hits = usize::try_from(most).unwrap_or(usize::MAX);
        hits.saturating_mul(super::encoded(WINDOW).saturating_add(LINE))
            .saturating_add(logs.saturating_mul(LINE))
    }

    /// Takes in a line of the answer, after the index of its question.
    pub(super) fn take(&mut self, mut line: Line<'_>, paths: &[Vec<RemotePath>]) -> Result<(), ParseError> {
        if line.tag == b"INVALID" {
            self.invalid = Some(reason(&line.blob_text()?));
            return Ok(());
        }
        let index = line.index(self.logs.len())?;
        let (hits, finished) = &mut self.logs[index];
        if finished.is_some() {
            return Err(line.malformed("a second answer about one log"));
        }
        let log = match line.tag {
            b"HIT" => {
                let (offset, length, start) = (line.value()?, line.value()?, line.value()?);
                hits.push(LogHit { offset, length, start, window: line.blob()? });
                return Ok(());
            }
            b"NONE" => SearchedLog::Missing,
            b"CLOSED" => SearchedLog::Unreadable,
            b"SEARCHED" => {
                let path = paths[index][line.index(paths[index].len())?].clone();
                let (size, to) = (line.value()?, line.value()?);
                SearchedLog::Read(LogFinds { path, size, to, hits: std::mem::take(hits) })
            }
            _ => return Err(line.malformed("an unknown kind of line")),
        };
        *finished = Some(log);
        Ok(())
    }

    /// The logs, or why the pattern is none. None if a log is missing in the answer.
    pub(super) fn whole(self) -> Option<Result<Vec<SearchedLog>, String>> {
        if let Some(reason) = self.invalid {
            return Some(Err(reason));
        }
        self.logs.into_iter().map(|(_, log)| log).collect::<Option<_>>().map(Ok)
    }
}

/// What `grep` says without its own name and that of a file. Warnings come before the error.
fn reason(said: &str) -> String {
    let last = said.lines().rfind(|line| !line.trim().is_empty()).unwrap_or_default();
    let reason = last.rsplit(": ").next().unwrap_or_default();
    reason.chars().filter(|letter| !letter.is_control()).take(200).collect()
}

#[cfg(test)]
mod tests {
    use test_case::test_case;

    use super::*;

    #[test_case("" => false; "empty")]
    #[test_case("a\nb" => false; "two lines")]
    #[test_case("a\rb" => false; "carriage return")]
    #[test_case("a\0" => false; "nul")]
    #[test_case("-e $(x) `y` \t'\"\\" => true; "words of a shell")]
    #[test_case("é" => true; "not ascii")]
    fn a_search_text_is_one_line(text: &str) -> bool {
        text.parse::<SearchText>().is_ok()
    }

    #[test_case("grep: /tmp/x/pattern:1: Unmatched ( or \\(\n" => "Unmatched ( or \\("; "with a file")]
    #[test_case("grep: warning: stray \\ before d\ngrep: Invalid regular expression\n" => "Invalid regular expression"; "after a warning")]
    #[test_case("" => ""; "nothing")]
    #[test_case("a: \u{1b}[31mred" => "[31mred"; "controls")]
    fn the_reason_is_that_of_grep(said: &str) -> String {
        reason(said)
    }

    #[test]
    fn a_search_text_has_at_most_500_characters() {
        assert!("é".repeat(500).parse::<SearchText>().is_ok());
        assert_eq!("é".repeat(501).parse::<SearchText>(), Err(InvalidSearchText));
    }
}
