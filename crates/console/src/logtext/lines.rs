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
    /// Whether it has the place that was asked for.
    pub(crate) is_marked: bool,
}

/// Reads lines from the bytes of a log. Colours go on from line to line.
#[derive(Debug, Clone, Default)]
pub(crate) struct Lines {
    style: Style,
}

impl Lines {
    /// The lines of these bytes. `offset` is the place of the first byte. The last line may have no end yet.
    pub(crate) fn read(&mut self, bytes: &[u8], offset: u64) -> Vec<Line> {
        self.read_marking(bytes, offset, None)
    }

    /// The same; the line with this place is marked, and shows what was written there, not what it was last.
    pub(crate) fn read_marking(&mut self, bytes: &[u8], mut offset: u64, place: Option<u64>) -> Vec<Line> {
        let lines = bytes.split_inclusive(|byte| *byte == b'\n');
        let read = |whole: &[u8]| {
            let body = whole.strip_suffix(b"\n").unwrap_or(whole);
            let within = place.and_then(|place| usize::try_from(place.checked_sub(offset)?).ok());
            let line = match within.filter(|within| *within < whole.len()) {
                Some(within) => self.marked(body, offset, within),
                None => self.line(body, offset),
            };
            offset += whole.len() as u64;
            line
        };
        lines.map(read).collect()
    }

    fn marked(&mut self, line: &[u8], offset: u64, within: usize) -> Line {
        let within = within.min(line.len());
        let begin = line[..within].iter().rposition(|byte| *byte == b'\r').map_or(0, |at| at + 1);
        let end = line[within..].iter().position(|byte| *byte == b'\r').map_or(line.len(), |at| within + at);
        // Of a part without end what is around the place.
        let begin = begin.max(within.saturating_sub(SHOWN / 2));
        Line { rewrites: rewrites(line), is_marked: true, ..self.line(&line[begin..end], offset) }
    }

    /// A line that may be written further. It does not change the colours of the next one.
    pub(crate) fn preview(&self, bytes: &[u8], offset: u64) -> Line {
        let (last, before) = last_two(bytes);
        let line = self.clone().line(&overwritten(before, last), offset);
        Line { rewrites: rewrites(bytes), ..line }
    }

    fn line(&mut self, line: &[u8], offset: u64) -> Line {
        let (last, _) = last_two(line);
        let (shown, cut) = match last.split_at_checked(SHOWN) {
            Some((shown, rest)) if !rest.is_empty() => (shown, rest.len()),
            _ => (last, 0),
        };
        let text: Cow<'_, str> = String::from_utf8_lossy(shown);
        Line { offset, html: paint(&text, &mut self.style), rewrites: rewrites(line), cut, is_marked: false }
    }
}

/// What was written to a line since its beginning or a carriage return.
fn parts(line: &[u8]) -> impl DoubleEndedIterator<Item = &[u8]> {
    line.split(|byte| *byte == b'\r').filter(|part| !part.is_empty())
}

/// How often a line was written anew.
fn rewrites(line: &[u8]) -> usize {
    parts(line).count().saturating_sub(1)
}

/// The last part of a line, which is what programs that draw a bar want to be seen, and the one before it.
fn last_two(line: &[u8]) -> (&[u8], &[u8]) {
    let mut parts = parts(line);
    (parts.next_back().unwrap_or_default(), parts.next_back().unwrap_or_default())
}

/// A part that is being written over the one before it: the rest of that one is still there.
fn overwritten<'a>(before: &'a [u8], last: &'a [u8]) -> Cow<'a, [u8]> {
    let is_plain = |part: &[u8]| !part.contains(&0x1b);
    match (str::from_utf8(before), str::from_utf8(last)) {
        (Ok(old), Ok(new)) if is_plain(before) && is_plain(last) => {
            let rest: String = old.chars().skip(new.chars().count()).collect();
            Cow::Owned([new, &rest].concat().into_bytes())
        }
        _ => Cow::Borrowed(last),
    }
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
    fn a_bar_that_is_being_drawn_keeps_the_rest_of_the_one_before() {
        let preview = |bytes: &[u8]| {
            let line = Lines::default().preview(bytes, 0);
            (line.html, line.rewrites)
        };
        assert_eq!(preview(b"\rTraining: 49%\rTrain"), ("Training: 49%".to_owned(), 1));
        assert_eq!(preview("é 1\ré".as_bytes()), ("é 1".to_owned(), 1));
        assert_eq!(preview(b"\x1b[31mold\rn"), ("n".to_owned(), 1));
        assert_eq!(preview(b""), (String::new(), 0));
    }

    #[test]
    fn the_line_with_a_place_shows_what_was_written_there() {
        let text = b"one\n 1%\r 2%\r 3%\nlast";
        let marked = |place| {
            let lines = Lines::default().read_marking(text, 100, Some(place));
            let mut marked = lines.into_iter().filter(|line| line.is_marked);
            let line = marked.next().map(|line| (line.offset, line.html, line.rewrites));
            assert!(marked.next().is_none());
            line
        };
        assert_eq!(marked(102), Some((100, "one".to_owned(), 0)));
        assert_eq!(marked(109), Some((104, " 2%".to_owned(), 2)));
        assert_eq!(marked(112), Some((104, " 3%".to_owned(), 2)));
        assert_eq!(marked(119), Some((116, "last".to_owned(), 0)));
        assert_eq!((marked(99), marked(120)), (None, None));
        let long = [b"x".repeat(1 << 20), b"needle".to_vec()].concat();
        let line = Lines::default().read_marking(&long, 0, Some(1 << 20)).remove(0);
        assert!(line.html.ends_with("needle") && line.html.len() < SHOWN, "{}", line.html.len());
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
