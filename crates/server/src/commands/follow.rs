//! Following a log: the stream is taken up again wherever it stopped, until the job has ended.

use std::{io, process::ExitCode};

use base64::{Engine, engine::general_purpose::STANDARD};
use serde::Deserialize;
use serde_json::Value;

use super::{
    output::{Output, remark},
    stream,
};
use crate::client::{Client, ServerEvent, on_one_line, printable};

/// The longest line that is held back until it is whole.
const LONGEST_LINE: usize = 64 * 1024;

/// What the events say; each has some of it.
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

/// Prints what comes until the stream says that nothing more will. `one` log is printed byte for byte, of several
/// whole lines.
pub(super) fn to_the_end(client: &Client, path: &str, json: bool, one: bool) -> anyhow::Result<ExitCode> {
    let mut output = Output::new();
    let mut lines = Lines::new(one);
    stream::to_the_end(client, path, None, |event| show(event, json, &mut lines, &mut output))?;
    Ok(ExitCode::SUCCESS)
}

fn show(event: &ServerEvent, json: bool, lines: &mut Lines, output: &mut Output) -> anyhow::Result<()> {
    if json {
        let mut data: Value = serde_json::from_str(&event.data).unwrap_or_default();
        if let Value::Object(data) = &mut data {
            data.insert("event".to_owned(), event.name.clone().into());
        }
        return Ok(output.line(&data.to_string())?);
    }
    let data: Data = serde_json::from_str(&event.data).unwrap_or_default();
    if event.name == "log" {
        return Ok(print(output, &lines.take(&data.file, &data.bytes()))?);
    }
    print(output, &lines.rest())?;
    let said = match event.name.as_str() {
        "attempt" => format!("attempt {} follows", data.attempt.unwrap_or_default()),
        "reset" => format!("{} was {} and begins anew", data.file, data.reason),
        _ => data.detail,
    };
    remark(&format!("({})", on_one_line(&said)));
    Ok(())
}

fn print(output: &mut Output, bytes: &[u8]) -> io::Result<()> {
    match (bytes.is_empty(), output.is_terminal) {
        (true, _) => Ok(()),
        (false, true) => output.bytes(printable(bytes).as_bytes()),
        (false, false) => output.bytes(bytes),
    }
}

/// Puts the pieces of several logs together so that none begins within a line of another.
struct Lines {
    /// Only one log comes: nothing has to be held back.
    one: bool,
    /// The beginnings of lines, by log.
    begun: Vec<(String, Vec<u8>)>,
    /// Whose lines were printed last.
    current: String,
}

impl Lines {
    fn new(one: bool) -> Self {
        Self { one, begun: Vec::new(), current: String::new() }
    }

    /// What to print now that these bytes have come.
    fn take(&mut self, file: &str, bytes: &[u8]) -> Vec<u8> {
        if self.one {
            return bytes.to_vec();
        }
        let place = self.begun.iter().position(|(known, _)| known == file).unwrap_or_else(|| {
            self.begun.push((file.to_owned(), Vec::new()));
            self.begun.len() - 1
        });
        let begun = &mut self.begun[place].1;
        begun.extend_from_slice(bytes);
        let mut end = begun.iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1);
        if end == 0 && begun.len() > LONGEST_LINE {
            end = begun.len();
        }
        let whole: Vec<u8> = begun.drain(..end).collect();
        self.headed(file, whole)
    }

    /// What was held back, each on a line of its own.
    fn rest(&mut self) -> Vec<u8> {
        let mut all = Vec::new();
        for (file, mut bytes) in std::mem::take(&mut self.begun) {
            if !bytes.is_empty() {
                bytes.push(b'\n');
                all.extend(self.headed(&file, bytes));
            }
        }
        all
    }

    /// The lines, under the name of their log where it changes. The two logs of a job need none: everybody knows
    /// them from each other, and mixes them on a terminal.
    fn headed(&mut self, file: &str, lines: Vec<u8>) -> Vec<u8> {
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
    fn one_log_is_printed_as_it_comes() {
        let mut lines = Lines::new(true);
        assert_eq!(lines.take("main.out", b"half a li"), b"half a li");
        assert_eq!(lines.take("main.out", b"ne\xff"), b"ne\xff");
        assert_eq!(lines.rest(), b"");
    }

    #[test]
    fn of_several_logs_whole_lines_are_printed() {
        let mut lines = Lines::new(false);
        assert_eq!(text(lines.take("main.out", b"one\nha")), "one\n");
        assert_eq!(text(lines.take("main.err", b"oops\n")), "oops\n");
        assert_eq!(text(lines.take("main.out", b"lf\nrest")), "half\n");
        assert_eq!(text(lines.rest()), "rest\n");
        assert_eq!(lines.take("main.out", &vec![b'x'; LONGEST_LINE + 1]).len(), LONGEST_LINE + 1);
    }

    #[test]
    fn tasks_are_told_apart() {
        let mut lines = Lines::new(false);
        assert_eq!(text(lines.take("policy/0.out", b"a\n")), "==> policy/0.out <==\na\n");
        assert_eq!(text(lines.take("policy/0.out", b"b\n")), "b\n");
        assert_eq!(text(lines.take("policy/1.out", b"c")), "");
        assert_eq!(text(lines.rest()), "==> policy/1.out <==\nc\n");
    }

    #[test]
    fn bytes_are_those_of_the_log() {
        let data = |json: &str| serde_json::from_str::<Data>(json).unwrap().bytes();
        assert_eq!(data(r#"{"text": "✓"}"#), "✓".as_bytes());
        assert_eq!(data(r#"{"bytes": "/wA="}"#), b"\xff\0");
        assert_eq!(data("{}"), b"");
    }
}
