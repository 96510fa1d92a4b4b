//! TAO's `status.json`: JSON Lines that the container appends while it runs.

use serde::Deserialize;
use serde_json::{Map, Value};
use strum::EnumString;

/// What a line says of the whole job. Other words (`SKIPPED`, …) say nothing about it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, EnumString, strum::Display)]
#[strum(serialize_all = "UPPERCASE")]
pub enum StatusWord {
    Started,
    Running,
    Success,
    Failure,
}

/// One complete line.
#[derive(Debug, Clone, PartialEq)]
pub struct StatusLine {
    pub word: Option<StatusWord>,
    pub message: Option<String>,
    pub epoch: Option<u64>,
    pub max_epoch: Option<u64>,
    pub eta: Option<String>,
    pub time_per_epoch: Option<String>,
    pub metrics: Map<String, Value>,
}

/// The fields we read; the rest of a line is TAO's own business.
#[derive(Deserialize)]
struct Raw {
    status: Option<Value>,
    message: Option<Value>,
    epoch: Option<Value>,
    max_epoch: Option<Value>,
    eta: Option<Value>,
    time_per_epoch: Option<Value>,
    kpi: Option<Value>,
}

/// A metric that is no number is somebody's experiment, and a thousand of them are a mistake.
pub(crate) const MAX_METRICS: usize = 64;
const MAX_TEXT: usize = 2000;
/// JavaScript clients read no larger whole number exactly.
const MAX_EPOCH: u64 = (1 << 53) - 1;

/// Reads the complete lines in `bytes` and says how many bytes they took: the rest is a line still being
/// written, to be read again with its end. Lines that are no JSON objects are passed over. Numbers of epochs
/// that no database stores are passed over too.
pub fn read_lines(bytes: &[u8]) -> (Vec<StatusLine>, usize) {
    let complete = bytes.iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1);
    let lines = bytes[..complete].split(|byte| *byte == b'\n').filter_map(parse_line).collect();
    (lines, complete)
}

fn parse_line(line: &[u8]) -> Option<StatusLine> {
    // serde would read an array as a record without names.
    if line.trim_ascii_start().first() != Some(&b'{') {
        return None;
    }
    // Python writes NaN and Infinity, which are no JSON; the line's other words are too good to lose.
    let raw: Raw = serde_json::from_slice(line)
        .or_else(|_| serde_json::from_str(&without_nan(&String::from_utf8_lossy(line))))
        .ok()?;
    let text = |value: Option<Value>| match value? {
        Value::String(text) => Some(plain(&text)),
        Value::Number(number) => Some(number.to_string()),
        Value::Null | Value::Bool(_) | Value::Array(_) | Value::Object(_) => None,
    };
    let count = |value: Option<Value>| value.as_ref().and_then(Value::as_u64).filter(|n| *n <= MAX_EPOCH);
    let metrics = match raw.kpi {
        Some(Value::Object(fields)) => {
            fields.into_iter().filter(|(key, value)| is_metric(key, value)).take(MAX_METRICS).collect()
        }
        _ => Map::new(),
    };
    Some(StatusLine {
        word: raw.status.as_ref().and_then(Value::as_str).and_then(|word| word.parse().ok()),
        message: text(raw.message),
        epoch: count(raw.epoch),
        max_epoch: count(raw.max_epoch),
        eta: text(raw.eta),
        time_per_epoch: text(raw.time_per_epoch),
        metrics,
    })
}

fn is_metric(key: &str, value: &Value) -> bool {
    value.is_number() && key.chars().count() <= 100 && !key.chars().any(char::is_control)
}

/// Replaces the bare words NaN and ±Infinity by null, outside of strings.
fn without_nan(line: &str) -> String {
    let mut clean = String::with_capacity(line.len());
    let (mut rest, mut quoted) = (line, false);
    while let Some(c) = rest.chars().next() {
        if quoted && c == '\\' {
            let escaped = rest.chars().take(2).map(char::len_utf8).sum();
            clean.push_str(&rest[..escaped]);
            rest = &rest[escaped..];
            continue;
        }
        quoted ^= c == '"';
        let bare = ["NaN", "-Infinity", "Infinity"].into_iter().find(|w| !quoted && rest.starts_with(w));
        let (text, taken) = bare.map_or((&rest[..c.len_utf8()], c.len_utf8()), |word| ("null", word.len()));
        clean.push_str(text);
        rest = &rest[taken..];
    }
    clean
}

/// One line without control characters: Postgres stores no NUL, and a terminal obeys an escape.
fn plain(text: &str) -> String {
    let mut plain: String =
        text.chars().take(MAX_TEXT).map(|c| if c.is_control() { '\u{fffd}' } else { c }).collect();
    if text.chars().nth(MAX_TEXT).is_some() {
        plain.push('…');
    }
    plain
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unfinished_line_is_left_for_later() {
        let (lines, taken) = read_lines(b"{\"status\":\"RUNNING\",\"epoch\":1}\n{\"status\":\"SUCC");
        assert_eq!(lines.len(), 1);
        assert_eq!(lines[0].word, Some(StatusWord::Running));
        assert_eq!(taken, 31);
    }

    #[test]
    fn garbage_between_lines_costs_only_itself() {
        let text = b"\xff\xfe\nnot json\n[1]\n{\"status\":\"FAILURE\"}\n";
        let (lines, taken) = read_lines(text);
        assert_eq!(lines.iter().map(|l| l.word).collect::<Vec<_>>(), [Some(StatusWord::Failure)]);
        assert_eq!(taken, text.len());
    }

    #[test]
    fn a_loss_that_is_not_a_number_does_not_hide_the_epoch() {
        let line = b"{\"status\":\"RUNNING\",\"epoch\":4,\"message\":\"NaN \\\" NaN\",\"kpi\":{\"loss\":NaN,\"acc\":0.5}}\n";
        let (lines, _) = read_lines(line);
        assert_eq!(lines[0].epoch, Some(4));
        assert_eq!(lines[0].message.as_deref(), Some("NaN \" NaN"));
        assert_eq!(lines[0].metrics.keys().collect::<Vec<_>>(), ["acc"]);
    }

    #[test]
    fn a_word_we_do_not_know_says_nothing_about_the_job() {
        let (lines, _) = read_lines(b"{\"status\":\"SKIPPED\"}\n");
        assert_eq!(lines[0].word, None);
    }

    #[test]
    fn control_characters_reach_neither_the_database_nor_a_terminal() {
        let line = b"{\"status\":\"RUNNING\",\"message\":\"a\\u0000b\\u001b[31m\",\"kpi\":{\"k\\u0000\":1,\"ok\":2}}\n";
        let (lines, _) = read_lines(line);
        assert_eq!(lines[0].message.as_deref(), Some("a\u{fffd}b\u{fffd}[31m"));
        assert_eq!(lines[0].metrics.keys().collect::<Vec<_>>(), ["ok"]);
    }

    proptest::proptest! {
        #[test]
        fn any_bytes_are_read_without_panic(bytes: Vec<u8>) {
            let (_, taken) = read_lines(&bytes);
            proptest::prop_assert!(taken <= bytes.len());
        }

        #[test]
        fn any_text_survives_the_removal_of_nan(text: String) {
            without_nan(&text);
        }
    }
}
