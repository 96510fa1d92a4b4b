//! A follower's position: the id of every event, which clients return as `Last-Event-ID`.
//!
//! `<attempt>`, then `;<file>=<byte offset>@<inode>` for each known log, then `;end` after the last event.

use std::{fmt, str::FromStr};

use domain::{AttemptNo, LogFile, LogPosition};

/// More than a job of several hundred tasks needs.
const MOST_BYTES: usize = 32 * 1024;
const END: &str = "end";

/// A position in the logs of a job.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Cursor {
    pub(super) attempt: AttemptNo,
    pub(super) files: Vec<(LogFile, LogPosition)>,
    /// After the event `end`.
    pub(super) is_end: bool,
}

impl fmt::Display for Cursor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.attempt)?;
        for (file, position) in &self.files {
            write!(f, ";{file}={}", position.offset)?;
            if let Some(inode) = position.inode {
                write!(f, "@{inode}")?;
            }
        }
        if self.is_end { write!(f, ";{END}") } else { Ok(()) }
    }
}

/// The text is not a cursor.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct NoCursor;

impl FromStr for Cursor {
    type Err = NoCursor;

    fn from_str(text: &str) -> Result<Self, NoCursor> {
        if text.len() > MOST_BYTES {
            return Err(NoCursor);
        }
        let mut parts = text.split(';');
        let attempt = parts.next().and_then(number).and_then(AttemptNo::new).ok_or(NoCursor)?;
        let mut cursor = Self { attempt, files: Vec::new(), is_end: false };
        for part in parts {
            if cursor.is_end {
                return Err(NoCursor);
            }
            if part == END {
                cursor.is_end = true;
                continue;
            }
            let (file, place) = part.split_once('=').ok_or(NoCursor)?;
            let (offset, inode) = match place.split_once('@') {
                Some((offset, inode)) => (offset, Some(number(inode).ok_or(NoCursor)?)),
                None => (place, None),
            };
            let position = LogPosition::new(inode, number(offset).ok_or(NoCursor)?);
            cursor.files.push((file.parse().map_err(|_| NoCursor)?, position));
        }
        Ok(cursor)
    }
}

/// Digits only; signs and spaces are invalid.
fn number<T: FromStr>(text: &str) -> Option<T> {
    if text.bytes().all(|byte| byte.is_ascii_digit()) { text.parse().ok() } else { None }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_cursor_is_short_and_reads_back() {
        let text = "2;main.out=123@99;main.err=0";
        let cursor: Cursor = text.parse().unwrap();
        assert_eq!(cursor.to_string(), text);
        assert_eq!(cursor.files[0].1, LogPosition::new(Some(99), 123));
        assert!(!cursor.is_end);
        assert!("1;end".parse::<Cursor>().unwrap().is_end);
    }

    #[test]
    fn a_foreign_cursor_is_refused() {
        for text in [
            "",
            "0",
            "x",
            "1;",
            "1;main.out",
            "1;main.out=",
            "1;main.out=1@",
            "1;x=1",
            "1;main.out=-1",
            "+1",
            "1;end;end",
        ] {
            assert_eq!(text.parse::<Cursor>(), Err(NoCursor), "{text:?}");
        }
    }

    proptest! {
        #[test]
        fn every_cursor_reads_back_as_itself(
            attempt in 1_u32.., offsets in proptest::collection::vec((any::<u64>(), any::<Option<u64>>()), 0..5), is_end: bool
        ) {
            let file = |task| format!("policy/{task}.out").parse().unwrap();
            let files = offsets.iter().enumerate().map(|(task, (offset, inode))| (file(task), LogPosition::new(*inode, *offset)));
            let cursor = Cursor { attempt: AttemptNo::new(attempt).unwrap(), files: files.collect(), is_end };
            prop_assert_eq!(cursor.to_string().parse::<Cursor>(), Ok(cursor));
        }

        #[test]
        fn no_text_makes_it_panic(text in any::<String>()) {
            let _ = text.parse::<Cursor>();
        }
    }
}
