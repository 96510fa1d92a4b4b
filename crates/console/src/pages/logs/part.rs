//! A part of a log: the bytes at a place, cut at the ends of lines.

use axum::http::HeaderMap;

use crate::{
    client::{Api, Failure, JOB_LOGS, Query},
    logtext::{Line, Lines},
};

/// The bytes of a window.
pub(super) const WINDOW: u64 = 128 * 1024;
/// The lines of a window. A window of short lines has fewer bytes.
pub(super) const LINES: usize = 4000;

/// Where a window is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Place {
    /// The end of the log.
    End,
    /// From this byte on.
    From(u64),
    /// The lines before this byte.
    Before(u64),
    /// The line with this byte, and lines around it.
    Around(u64),
}

/// What is shown before a place.
const LEAD: u64 = 16 * 1024;

impl Place {
    pub(super) fn of(query: &Query) -> Self {
        let number = |name: &str| query.one(name).and_then(|text| text.parse::<u64>().ok());
        match (number("at"), number("offset"), number("before")) {
            (Some(at), ..) => Self::Around(at),
            (None, Some(offset), _) => Self::From(offset),
            (None, None, Some(before)) => Self::Before(before),
            (None, None, None) => Self::End,
        }
    }

    /// The byte whose line is marked.
    fn mark(self) -> Option<u64> {
        if let Self::Around(at) = self { Some(at) } else { None }
    }
}

/// The bytes of a log from a place on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Part {
    pub(super) start: u64,
    pub(super) bytes: Vec<u8>,
    /// The size of the whole log when it was read.
    pub(super) size: u64,
    pub(super) attempt: Option<u64>,
}

impl Part {
    pub(super) fn end(&self) -> u64 {
        self.start + self.bytes.len() as u64
    }

    /// Reads the part; it begins and ends with whole lines where the log has such.
    pub(super) async fn read(api: &Api, job: &str, log: &Query, place: Place) -> Result<Self, Failure> {
        match place {
            Place::From(offset) => {
                let part = Self::bytes(api, job, log, offset.saturating_sub(1), WINDOW).await?;
                Ok(part.beginning_at(offset).ending_whole())
            }
            Place::Before(end) => {
                let from = end.saturating_sub(WINDOW);
                let part =
                    Self::bytes(api, job, log, from.saturating_sub(1), end - from.saturating_sub(1)).await?;
                Ok(part.beginning_at(from).last_lines())
            }
            Place::Around(at) => {
                let from = at.saturating_sub(LEAD);
                let part = Self::bytes(api, job, log, from.saturating_sub(1), WINDOW).await?;
                Ok(part.around(from, at).ending_whole())
            }
            Place::End => {
                // One byte more than is shown: it tells whether a line begins there. Without a limit, lines with bars of progress are megabytes.
                let query = log.clone().with("tail", LINES).with("limit", WINDOW + 1);
                let document = api.document(&JOB_LOGS, &[job], &query).await?;
                let part = Self::of(&document.headers, document.bytes.to_vec());
                let from = part.end().saturating_sub(WINDOW);
                Ok(if part.start < from { part.beginning_at(from) } else { part }.last_lines())
            }
        }
    }

    pub(super) async fn bytes(
        api: &Api,
        job: &str,
        log: &Query,
        offset: u64,
        limit: u64,
    ) -> Result<Self, Failure> {
        let query = log.clone().with("offset", offset).with("limit", limit.max(1));
        let document = api.document(&JOB_LOGS, &[job], &query).await?;
        Ok(Self::of(&document.headers, document.bytes.to_vec()))
    }

    fn of(headers: &HeaderMap, bytes: Vec<u8>) -> Self {
        let number = |name: &str| {
            headers.get(name).and_then(|text| text.to_str().ok()).and_then(|text| text.parse().ok())
        };
        let length = bytes.len() as u64;
        let start = number("x-log-offset").unwrap_or(0);
        Self {
            start,
            bytes,
            size: number("x-log-size").unwrap_or(start + length).max(start + length),
            attempt: number("x-log-attempt"),
        }
    }

    /// Begins with the first line that begins at this byte or after it. A line that fills the whole part is cut.
    fn beginning_at(mut self, offset: u64) -> Self {
        if offset == 0 || self.bytes.is_empty() {
            return self;
        }
        let known =
            usize::try_from(offset.saturating_sub(self.start)).unwrap_or(usize::MAX).min(self.bytes.len());
        // The byte before tells whether a line begins here.
        let search = &self.bytes[known.saturating_sub(1)..];
        let cut = match search.iter().position(|byte| *byte == b'\n') {
            Some(end) if known.saturating_sub(1) + end + 1 < self.bytes.len() => {
                known.saturating_sub(1) + end + 1
            }
            _ => known,
        };
        self.start += cut as u64;
        self.bytes.drain(..cut);
        self
    }

    /// The same, but never after `at`: a line that begins before `offset` and has it is cut.
    fn around(self, offset: u64, at: u64) -> Self {
        let whole = self.clone().beginning_at(offset);
        if whole.start <= at || self.bytes.is_empty() {
            return whole;
        }
        let cut = usize::try_from(offset.saturating_sub(self.start)).unwrap_or(0).min(self.bytes.len());
        Self { start: self.start + cut as u64, bytes: self.bytes[cut..].to_vec(), ..self }
    }

    /// Ends with a whole line, unless the log itself ends here or the line fills the part.
    fn ending_whole(mut self) -> Self {
        let mut ends =
            self.bytes.iter().enumerate().filter(|(_, byte)| **byte == b'\n').map(|(place, _)| place + 1);
        if let Some(end) = ends.clone().nth(LINES - 1) {
            self.bytes.truncate(end);
        } else if self.end() < self.size
            && let Some(end) = ends.next_back()
        {
            self.bytes.truncate(end);
        }
        self
    }

    /// Only as many lines as a window has, from the end.
    fn last_lines(mut self) -> Self {
        let body = self.bytes.strip_suffix(b"\n").unwrap_or(&self.bytes);
        let cut = body
            .iter()
            .enumerate()
            .rev()
            .filter(|(_, byte)| **byte == b'\n')
            .nth(LINES - 1)
            .map(|(place, _)| place + 1);
        if let Some(cut) = cut {
            self.start += cut as u64;
            self.bytes.drain(..cut);
        }
        self
    }

    pub(super) fn lines(&self, place: Place) -> Vec<Line> {
        Lines::default().read_marking(&self.bytes, self.start, place.mark())
    }
}

#[cfg(test)]
mod tests {
    use test_case::test_case;

    use super::*;

    fn part(start: u64, text: &str, size: u64) -> Part {
        Part { start, bytes: text.as_bytes().to_vec(), size, attempt: None }
    }

    // The log is "one\ntwo\nthree\n"; the byte before a place is read with it.
    #[test_case(3, 4 => (4, "two\nthree\n".to_owned()); "a line begins at the place")]
    #[test_case(4, 5 => (8, "three\n".to_owned()); "the place is in a line")]
    #[test_case(9, 10 => (10, "ree\n".to_owned()); "no other line begins")]
    #[test_case(0, 0 => (0, "one\ntwo\nthree\n".to_owned()); "the beginning")]
    fn a_window_begins_with_a_line(start: u64, offset: u64) -> (u64, String) {
        let log = "one\ntwo\nthree\n";
        let part = part(start, &log[usize::try_from(start).unwrap()..], 14).beginning_at(offset);
        (part.start, String::from_utf8(part.bytes).unwrap())
    }

    #[test_case(4, 6 => (4, "two\nthree\n".to_owned()); "a line begins at the beginning")]
    #[test_case(5, 9 => (8, "three\n".to_owned()); "a line begins before the place")]
    #[test_case(9, 12 => (9, "hree\n".to_owned()); "the last line")]
    fn a_window_around_a_place_has_its_line(offset: u64, at: u64) -> (u64, String) {
        let part = part(offset - 1, &"one\ntwo\nthree\n"[usize::try_from(offset).unwrap() - 1..], 14)
            .around(offset, at);
        assert!(part.start <= at);
        (part.start, String::from_utf8(part.bytes).unwrap())
    }

    #[test]
    fn a_window_ends_with_a_line_unless_the_log_ends() {
        assert_eq!(part(0, "one\ntw", 14).ending_whole().bytes, b"one\n");
        assert_eq!(part(0, "one\ntw", 6).ending_whole().bytes, b"one\ntw");
        assert_eq!(part(0, "onetw", 14).ending_whole().bytes, b"onetw");
    }

    #[test]
    fn a_window_of_short_lines_is_cut_by_their_number() {
        let text = "x\n".repeat(LINES + 5);
        let size = text.len() as u64;
        assert_eq!(part(0, &text, size).ending_whole().bytes.len(), LINES * 2);
        let last = part(0, &text, size).last_lines();
        assert_eq!((last.start, last.bytes.len()), (10, LINES * 2));
        assert_eq!(part(0, "a\nb", 3).last_lines(), part(0, "a\nb", 3));
    }
}
