//! The logs of an attempt: their names, and how far a reader has followed one.

use std::{fmt, str::FromStr};

use slurm::text_type;

use crate::request::results::LogStream;

const MOST_ROLE_BYTES: usize = 32;
/// Six digits: more tasks than any allocation has.
const MOST_TASK_DIGITS: usize = 6;

/// A role in a job of several programs, such as `policy`. Its logs are in a directory of this name.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LogRole(String);

text_type!(LogRole, InvalidLogName);

/// A text that names no log and no role.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("not the name of a log")]
pub struct InvalidLogName;

impl LogRole {
    /// A letter or digit, then letters, digits, `-` and `_`; at most 32 bytes.
    fn check(text: &str) -> Result<String, InvalidLogName> {
        let bytes = text.as_bytes();
        let begins = bytes.first().is_some_and(u8::is_ascii_alphanumeric);
        let goes_on = bytes.iter().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_'));
        let is_name = begins && goes_on && bytes.len() <= MOST_ROLE_BYTES;
        is_name.then(|| text.to_owned()).ok_or(InvalidLogName)
    }
}

/// One log of an attempt. It is displayed as its path below the attempt's log directory: `main.out`, `policy/3.err`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum LogFile {
    /// The batch script's own, with all output that it does not redirect.
    Main(LogStream),
    /// That of one task of a role.
    Task { role: LogRole, task: u32, stream: LogStream },
}

impl LogFile {
    pub fn stream(&self) -> LogStream {
        match self {
            Self::Main(stream) | Self::Task { stream, .. } => *stream,
        }
    }

    /// The log with this file name in the role's directory.
    pub fn of_role(role: &LogRole, name: &str) -> Option<Self> {
        let (task, stream) = name.split_once('.')?;
        let is_number =
            (1..=MOST_TASK_DIGITS).contains(&task.len()) && task.bytes().all(|b| b.is_ascii_digit());
        // A file has one spelling: `01.out` is not ours.
        let is_plain = task == "0" || !task.starts_with('0');
        if !is_number || !is_plain {
            return None;
        }
        Some(Self::Task { role: role.clone(), task: task.parse().ok()?, stream: stream.parse().ok()? })
    }
}

impl fmt::Display for LogFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Main(stream) => write!(f, "main.{stream}"),
            Self::Task { role, task, stream } => write!(f, "{role}/{task}.{stream}"),
        }
    }
}

impl FromStr for LogFile {
    type Err = InvalidLogName;

    fn from_str(text: &str) -> Result<Self, InvalidLogName> {
        let file = match text.split_once('/') {
            Some((role, name)) => Self::of_role(&role.parse()?, name),
            None => text.strip_prefix("main.").and_then(|stream| Some(Self::Main(stream.parse().ok()?))),
        };
        file.ok_or(InvalidLogName)
    }
}

/// A reader's position in a log.
///
/// A log grows while its job writes it. It may also be emptied or replaced, and a login host that caches file sizes may
/// report it shorter than another host did a moment ago.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct LogPosition {
    /// The file; absent until it was seen.
    pub inode: Option<u64>,
    /// The first byte that was not passed on yet, counted from the start of the file.
    pub offset: u64,
    /// The file was shorter than `offset` at the last check.
    was_shorter: bool,
}

/// How the file relates to a reader's position.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LogContinuity {
    /// It is the same file, and the bytes after the position continue it.
    Continues,
    /// It is shorter than it was. One check is no proof; check again.
    Doubtful,
    /// Another file has its name now. The position is at its start.
    Replaced,
    /// It was emptied, and may have grown again. The position is at its start.
    Truncated,
}

impl LogPosition {
    pub const fn new(inode: Option<u64>, offset: u64) -> Self {
        Self { inode, offset, was_shorter: false }
    }

    /// Compares the position with the file. `inode` and `size` (bytes) are of one stat.
    pub fn check(&mut self, inode: u64, size: u64) -> LogContinuity {
        let known = self.inode.replace(inode);
        if known.is_some_and(|known| known != inode) {
            *self = Self::new(Some(inode), 0);
            return LogContinuity::Replaced;
        }
        if size >= self.offset {
            self.was_shorter = false;
            return LogContinuity::Continues;
        }
        if !self.was_shorter {
            self.was_shorter = true;
            return LogContinuity::Doubtful;
        }
        *self = Self::new(Some(inode), 0);
        LogContinuity::Truncated
    }

    /// Moves past bytes that were passed on.
    pub fn advance(&mut self, bytes: u64) {
        self.offset = self.offset.saturating_add(bytes);
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use test_case::test_case;

    use super::*;

    #[test_case("main.out")]
    #[test_case("main.err")]
    #[test_case("policy/0.out")]
    #[test_case("rollout-2/123456.err")]
    fn a_name_reads_back_as_itself(name: &str) {
        assert_eq!(name.parse::<LogFile>().unwrap().to_string(), name);
    }

    #[test_case(""; "empty")]
    #[test_case("main.log"; "another ending")]
    #[test_case("main"; "no ending")]
    #[test_case("../main.out"; "up")]
    #[test_case("/0.out"; "no role")]
    #[test_case("policy/"; "no task")]
    #[test_case("policy/01.out"; "a second spelling")]
    #[test_case("policy/1234567.out"; "too many digits")]
    #[test_case("policy/+1.out"; "signed")]
    #[test_case("policy/x/0.out"; "deeper")]
    #[test_case("pol icy/0.out"; "space")]
    fn other_names_are_refused(name: &str) {
        assert_eq!(name.parse::<LogFile>(), Err(InvalidLogName));
    }

    proptest! {
        #[test]
        fn every_accepted_name_stays_below_the_log_directory(text in "[a-z./0-9\n -]{0,20}") {
            if let Ok(file) = text.parse::<LogFile>() {
                prop_assert_eq!(file.to_string(), text.clone());
                prop_assert!(!text.contains("..") && !text.starts_with('/') && !text.contains('\n'));
            }
        }
    }

    #[test]
    fn a_growing_file_continues() {
        let mut position = LogPosition::default();
        assert_eq!(position.check(7, 10), LogContinuity::Continues);
        position.advance(10);
        assert_eq!(position.check(7, 10), LogContinuity::Continues);
        assert_eq!(position, LogPosition::new(Some(7), 10));
    }

    #[test]
    fn another_file_is_read_from_its_start_at_once() {
        let mut position = LogPosition::new(Some(7), 10);
        assert_eq!(position.check(8, 500), LogContinuity::Replaced);
        assert_eq!(position, LogPosition::new(Some(8), 0));
    }

    #[test]
    fn a_shorter_file_counts_as_truncated_at_the_second_check() {
        let mut position = LogPosition::new(Some(7), 10);
        assert_eq!(position.check(7, 3), LogContinuity::Doubtful);
        assert_eq!(position.offset, 10);
        assert_eq!(position.check(7, 4), LogContinuity::Truncated);
        assert_eq!(position, LogPosition::new(Some(7), 0));
    }

    #[test]
    fn a_host_with_a_stale_size_changes_nothing() {
        let mut position = LogPosition::new(Some(7), 10);
        assert_eq!(position.check(7, 3), LogContinuity::Doubtful);
        assert_eq!(position.check(7, 12), LogContinuity::Continues);
        assert_eq!(position.check(7, 9), LogContinuity::Doubtful, "the longer size cleared the doubt");
        assert_eq!(position.offset, 10);
    }
}
