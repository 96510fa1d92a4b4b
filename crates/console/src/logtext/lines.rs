//! Lines of a log with their places.

use std::borrow::Cow;

use super::paint::{Style, paint};

/// What is shown of one line, in bytes.
const SHOWN: usize = 16 * 1024;

/// A line as HTML.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Line {
    /// The place of its first byte in the log.
    pub(crate) offset: u64,
    pub(crate) html: String,
    /// How often the line was written anew, each time over the text before.
    pub(crate) rewrites: usize,
    /// The bytes at its end that are not shown.
    pub(crate) cut: usize,
}

/// Reads lines from the bytes of a log. Colours go on from line to line.
#[derive(Debug, Clone, Default)]
pub(crate) struct Lines {
    style: Style,
}

impl Lines {
    /// The lines of these bytes. `offset` is the place of the first byte. The last line may have no end yet.
    pub(crate) fn read(&mut self, bytes: &[u8], mut offset: u64) -> Vec<Line> {
        let lines = bytes.split_inclusive(|byte| *byte == b'\n');
        let read = |whole: &[u8]| {
            let line = self.line(whole.strip_suffix(b"\n").unwrap_or(whole), offset);
            offset += whole.len() as u64;
            line
        };
        lines.map(read).collect()
    }

    /// A line that may be written further. It does not change the colours of the next one.
    pub(crate) fn preview(&self, bytes: &[u8], offset: u64) -> Line {
        self.clone().line(bytes, offset)
    }

    fn line(&mut self, line: &[u8], offset: u64) -> Line {
        let (line, rewrites) = as_last_written(line);
        let (shown, cut) = match line.split_at_checked(SHOWN) {
            Some((shown, rest)) if !rest.is_empty() => (shown, rest.len()),
            _ => (line, 0),
        };
        let text: Cow<'_, str> = String::from_utf8_lossy(shown);
        Line { offset, html: paint(&text, &mut self.style), rewrites, cut }
    }
}

/// What a terminal shows of a line in which carriage returns go back to its beginning, and how often that happened. Programs
/// that draw a bar write the whole line again.
fn as_last_written(line: &[u8]) -> (&[u8], usize) {
    let mut parts = line.split(|byte| *byte == b'\r').filter(|part| !part.is_empty());
    let Some(last) = parts.next_back() else { return (b"", 0) };
    (last, parts.count())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(bytes: &[u8]) -> Vec<(u64, String, usize, usize)> {
        let lines = Lines::default().read(bytes, 100);
        lines.into_iter().map(|line| (line.offset, line.html, line.rewrites, line.cut)).collect()
    }

    #[test]
    fn lines_have_the_places_of_their_first_bytes() {
        let lines = read(b"one\n\ntwo\r\nthree");
        let expected = [(100, "one"), (104, ""), (105, "two"), (110, "three")];
        assert_eq!(lines, expected.map(|(offset, text)| (offset, text.to_owned(), 0, 0)));
        assert_eq!(read(b""), []);
    }

    #[test]
    fn a_bar_is_shown_as_it_was_last() {
        let bar = b"\r  0%|      | 0/10\r 50%|###   | 5/10\r100%|######| 10/10\n";
        assert_eq!(read(bar), [(100, "100%|######| 10/10".to_owned(), 2, 0)]);
        assert_eq!(read(b"\r\r\r"), [(100, String::new(), 0, 0)]);
    }

    #[test]
    fn a_long_line_is_cut_and_bytes_that_are_no_text_do_not_matter() {
        let long = [b"x".repeat(1 << 20), b"\nnext".to_vec()].concat();
        let lines = read(&long);
        assert_eq!((lines[0].1.len(), lines[0].3), (SHOWN, (1 << 20) - SHOWN));
        assert_eq!((lines[1].0, lines[1].1.as_str()), (100 + (1 << 20) + 1, "next"));
        assert_eq!(read(b"a\xff\0b")[0].1, "a\u{fffd}<span class=\"odd\">␀</span>b");
    }

    #[test]
    fn the_preview_of_a_line_leaves_the_colours_as_they_are() {
        let mut lines = Lines::default();
        assert_eq!(lines.preview(b"\x1b[31mred", 0).html, "<span class=\"f1\">red</span>");
        assert_eq!(lines.read(b"plain", 0)[0].html, "plain");
    }
}
