//! Printing followed logs. Lines of several logs are never mixed within a line.

use std::collections::BTreeMap;

use base64::{Engine, engine::general_purpose::STANDARD};
use serde::Deserialize;
use serde_json::Value;

use super::output::{Output, note};
use crate::client::{ServerEvent, on_one_line};

/// Longer lines are printed in parts.
const LONGEST_LINE: usize = 64 * 1024;

/// The fields of all kinds of events.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Data {
    file: String,
    text: Option<String>,
    bytes: Option<String>,
    attempt: Option<u32>,
    reason: String,
    detail: String,
}

impl Data {
    fn bytes(&self) -> Vec<u8> {
        let decoded = self.bytes.as_ref().and_then(|bytes| STANDARD.decode(bytes).ok());
        decoded.or_else(|| self.text.as_ref().map(|text| text.clone().into_bytes())).unwrap_or_default()
    }
}

/// Prints the events of a followed log.
pub(super) struct Printer {
    json: bool,
    lines: Lines,
    output: Output,
}

impl Printer {
    /// A `single` log is printed byte for byte, several logs in whole lines.
    pub(super) fn new(json: bool, single: bool) -> Self {
        Self { json, lines: Lines::new(single), output: Output::new() }
    }

    pub(super) fn print(&mut self, event: &ServerEvent) -> anyhow::Result<()> {
        if self.json {
            let mut data: Value = serde_json::from_str(&event.data).unwrap_or_default();
            if let Value::Object(data) = &mut data {
                data.insert("event".to_owned(), event.name.clone().into());
            }
            return Ok(self.output.line(&data.to_string())?);
        }
        let data: Data = serde_json::from_str(&event.data).unwrap_or_default();
        if event.name == "log" {
            return Ok(self.output.foreign(&self.lines.take(&data.file, &data.bytes()))?);
        }
        self.output.foreign(&self.lines.rest())?;
        let text = match event.name.as_str() {
            "attempt" => format!("attempt {}", data.attempt.unwrap_or_default()),
            "reset" => format!("{} was {}; reading from its start", data.file, data.reason),
            _ => data.detail,
        };
        note(&format!("({})", on_one_line(&text)));
        Ok(())
    }
}

/// Joins the parts of several logs so that each line is printed whole.
struct Lines {
    /// A single log needs no buffer.
    single: bool,
    /// Incomplete lines, by log.
    incomplete: BTreeMap<String, Vec<u8>>,
    /// The log whose lines were printed last.
    current: String,
}

impl Lines {
    fn new(single: bool) -> Self {
        Self { single, incomplete: BTreeMap::new(), current: String::new() }
    }

    /// Adds bytes of a log, and returns what can be printed.
    fn take(&mut self, file: &str, bytes: &[u8]) -> Vec<u8> {
        if self.single {
            return bytes.to_vec();
        }
        let buffer = self.incomplete.entry(file.to_owned()).or_default();
        buffer.extend_from_slice(bytes);
        let mut end = buffer.iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1);
        if end == 0 && buffer.len() > LONGEST_LINE {
            end = buffer.len();
        }
        let complete: Vec<u8> = buffer.drain(..end).collect();
        self.with_header(file, complete)
    }

    /// The incomplete lines, each completed with a newline.
    fn rest(&mut self) -> Vec<u8> {
        let mut all = Vec::new();
        for (file, mut bytes) in std::mem::take(&mut self.incomplete) {
            if !bytes.is_empty() {
                bytes.push(b'\n');
                all.extend(self.with_header(&file, bytes));
            }
        }
        all
    }

    /// Puts the name of the log above its lines when the log changes. Standard output and error of the job itself have no
    /// header, as on a terminal.
    fn with_header(&mut self, file: &str, lines: Vec<u8>) -> Vec<u8> {
        if lines.is_empty() || !file.contains('/') || self.current == file {
            return lines;
        }
        file.clone_into(&mut self.current);
        [format!("==> {} <==\n", on_one_line(file)).into_bytes(), lines].concat()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(bytes: Vec<u8>) -> String {
        String::from_utf8(bytes).unwrap()
    }

    #[test]
    fn a_single_log_is_printed_unbuffered() {
        let mut lines = Lines::new(true);
        assert_eq!(lines.take("main.out", b"half a li"), b"half a li");
        assert_eq!(lines.take("main.out", b"ne\xff"), b"ne\xff");
        assert_eq!(lines.rest(), b"");
    }

    #[test]
    fn several_logs_are_printed_in_whole_lines() {
        let mut lines = Lines::new(false);
        assert_eq!(text(lines.take("main.out", b"one\nha")), "one\n");
        assert_eq!(text(lines.take("main.err", b"oops\n")), "oops\n");
        assert_eq!(text(lines.take("main.out", b"lf\nrest")), "half\n");
        assert_eq!(text(lines.rest()), "rest\n");
        assert_eq!(lines.take("main.out", &vec![b'x'; LONGEST_LINE + 1]).len(), LONGEST_LINE + 1);
    }

    #[test]
    fn logs_of_tasks_have_headers() {
        let mut lines = Lines::new(false);
        assert_eq!(text(lines.take("policy/0.out", b"a\n")), "==> policy/0.out <==\na\n");
        assert_eq!(text(lines.take("policy/0.out", b"b\n")), "b\n");
        assert_eq!(text(lines.take("policy/1.out", b"c")), "");
        assert_eq!(text(lines.rest()), "==> policy/1.out <==\nc\n");
    }

    #[test]
    fn text_and_base64_are_decoded() {
        let data = |json: &str| serde_json::from_str::<Data>(json).unwrap().bytes();
        assert_eq!(data(r#"{"text": "✓"}"#), "✓".as_bytes());
        assert_eq!(data(r#"{"bytes": "/wA="}"#), b"\xff\0");
        assert_eq!(data("{}"), b"");
    }
}
