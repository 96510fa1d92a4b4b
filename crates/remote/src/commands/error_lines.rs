//! Lines of logs that look like errors, as the programs print them.

/// The lines of one log that look like errors, and lines around them, by offset.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct LogErrors {
    /// The log's path below the directory of the job's logs: `main.err`, `policy/0.out`.
    pub log: String,
    /// The lines.
    pub lines: Vec<LogLine>,
    /// Whether lines that look like errors may be missing: there were too many, or the log is too large to be searched whole.
    pub has_gaps: bool,
}

/// A line of a log. A carriage return ends a line, too.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LogLine {
    /// Where it begins in its log, in bytes.
    pub offset: u64,
    /// Its first 1000 bytes, as the job wrote them.
    pub text: String,
    /// Whether it looks like an error; the others are around such lines.
    pub is_match: bool,
}

impl LogErrors {
    /// Reads what `find_errors` has printed. The text is the job's own: what is malformed is left out.
    pub(super) fn read(bytes: &[u8]) -> Vec<Self> {
        let mut logs: Vec<Self> = Vec::new();
        for line in bytes.split(|byte| *byte == b'\n') {
            let Some((tag, rest)) = line.split_first() else { continue };
            let rest = rest.strip_prefix(b" ").unwrap_or(rest);
            match (tag, logs.last_mut()) {
                (b'L', _) => {
                    logs.push(Self { log: String::from_utf8_lossy(rest).into_owned(), ..Self::default() });
                }
                (b'G' | b'X', Some(log)) => log.has_gaps = true,
                (b'M' | b'C', Some(log)) => log.lines.extend(LogLine::read(rest, *tag == b'M')),
                _ => {}
            }
        }
        for log in &mut logs {
            // The first lines and the last ones are chosen apart.
            log.lines.sort_by_key(|line| (line.offset, !line.is_match));
            log.lines.dedup_by_key(|line| line.offset);
        }
        logs
    }
}

impl LogLine {
    fn read(text: &[u8], is_match: bool) -> Option<Self> {
        let space = text.iter().position(|byte| *byte == b' ')?;
        let offset = str::from_utf8(&text[..space]).ok()?.parse().ok()?;
        Some(Self { offset, text: String::from_utf8_lossy(&text[space + 1..]).into_owned(), is_match })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn lines_are_in_the_order_of_their_log() {
        let read = LogErrors::read(
            b"L main.err\nM 40 second\nC 10 around\nM 10 first\nG\nL main.out\nM x y\nM 3 z\n",
        );
        let shown: Vec<_> =
            read[0].lines.iter().map(|line| (line.offset, line.text.as_str(), line.is_match)).collect();
        assert_eq!(shown, [(10, "first", true), (40, "second", true)]);
        assert_eq!((read[0].has_gaps, read[1].has_gaps), (true, false));
        assert_eq!((read[1].log.as_str(), read[1].lines.len()), ("main.out", 1));
    }

    proptest! {
        #[test]
        fn no_bytes_make_the_reader_panic(bytes in any::<Vec<u8>>()) {
            let _ = LogErrors::read(&bytes);
        }
    }
}
