//! One line of TAO's `status.json`: JSON Lines that the container appends while it runs.

use chrono::NaiveDate;
use serde_json::{Map, Value, json};
use strum::EnumString;

/// The status of the whole job in a line. Other words (`SKIPPED`, …) do not describe the whole job.
#[derive(Debug, Clone, Copy, PartialEq, Eq, EnumString, strum::Display)]
#[strum(serialize_all = "UPPERCASE")]
pub enum StatusWord {
    Started,
    Running,
    Success,
    Failure,
}

/// One complete line.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct StatusLine {
    pub word: Option<StatusWord>,
    pub message: Option<String>,
    pub epoch: Option<u64>,
    pub max_epoch: Option<u64>,
    pub cur_iter: Option<u64>,
    pub eta: Option<String>,
    pub time_per_epoch: Option<String>,
    pub time_per_iter: Option<String>,
    pub key_metric: Option<f64>,
    pub metrics: Map<String, Value>,
    /// The job's own `date` and `time`, in seconds since 1970 as if in UTC: only differences between lines are meaningful.
    pub clock: Option<i64>,
}

/// The most metrics of a job.
pub(crate) const MAX_METRICS: usize = 64;
/// A longer line, in bytes, is not read.
const MAX_LINE: usize = 128 * 1024;
/// The event of a longer line, in bytes, contains only its plain fields.
const MAX_EVENT: usize = 16 * 1024;
const MAX_TEXT: usize = 2000;
/// JavaScript clients do not represent larger integers exactly.
const MAX_WHOLE: u64 = (1 << 53) - 1;

/// The complete lines of some bytes.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Cut<'a> {
    /// The start of each, and its text without the newline; no text if it is too long.
    pub(crate) lines: Vec<(usize, Option<&'a [u8]>)>,
    /// The size of the complete lines. The rest is an incomplete line, to be read again.
    pub(crate) taken: usize,
    /// The bytes end within a line that is too long.
    pub(crate) skipping: bool,
}

/// Splits bytes into lines. `skipping`: they begin within a line that is too long.
pub(crate) fn cut(bytes: &[u8], mut skipping: bool) -> Cut<'_> {
    let (mut lines, mut begin) = (Vec::new(), 0);
    while let Some(length) = bytes[begin..].iter().position(|byte| *byte == b'\n') {
        let text = &bytes[begin..begin + length];
        lines.push((begin, (!skipping && length <= MAX_LINE).then_some(text)));
        skipping = false;
        begin += length + 1;
    }
    let skipping = skipping || bytes.len() - begin > MAX_LINE;
    let taken = if skipping { bytes.len() } else { begin };
    Cut { lines, taken, skipping }
}

/// Parses the complete lines in `bytes`, and returns their size. Lines that are not JSON objects are skipped.
pub fn read_lines(bytes: &[u8]) -> (Vec<StatusLine>, usize) {
    let cut = cut(bytes, false);
    let texts = cut.lines.iter().filter_map(|(_, text)| *text);
    (texts.filter_map(|text| read_line(text)?.0).collect(), cut.taken)
}

/// Parses a line: its content if it is a JSON object, and the data of its event. `None` for an empty line.
pub(crate) fn read_line(text: &[u8]) -> Option<(Option<StatusLine>, Value)> {
    if text.iter().all(u8::is_ascii_whitespace) {
        return None;
    }
    let Some(mut fields) = object(text) else { return Some((None, unreadable(text))) };
    let line = StatusLine::from(&fields);
    if text.len() > MAX_EVENT {
        fields.retain(|_, value| !value.is_object() && !value.is_array());
        fields.values_mut().for_each(shorten);
        // A long line may also have many small fields.
        if fields.len() > MAX_METRICS {
            fields = fields.into_iter().take(MAX_METRICS).collect();
        }
        fields.insert("truncated_from_bytes".to_owned(), text.len().into());
    }
    Some((Some(line), storable(Value::Object(fields))))
}

/// The event data of a line that could not be parsed.
pub(crate) fn unreadable(text: &[u8]) -> Value {
    let start: String = String::from_utf8_lossy(&text[..text.len().min(1000)]).chars().take(200).collect();
    json!({ "unreadable": plain(&start) })
}

fn object(text: &[u8]) -> Option<Map<String, Value>> {
    // Python writes NaN and Infinity, which are not JSON. The rest of such a line is still useful.
    serde_json::from_slice(text)
        .or_else(|_| serde_json::from_str(&without_nan(&String::from_utf8_lossy(text))))
        .ok()
}

impl From<&Map<String, Value>> for StatusLine {
    fn from(fields: &Map<String, Value>) -> Self {
        let text = |key| match fields.get(key)? {
            Value::String(text) => Some(plain(text)),
            Value::Number(number) => Some(number.to_string()),
            Value::Null | Value::Bool(_) | Value::Array(_) | Value::Object(_) => None,
        };
        let count = |key| fields.get(key).and_then(Value::as_u64).filter(|n| *n <= MAX_WHOLE);
        let metrics = match fields.get("kpi") {
            Some(Value::Object(fields)) => {
                let metrics = fields.iter().filter(|(key, value)| is_metric(key, value)).take(MAX_METRICS);
                metrics.map(|(key, value)| (key.clone(), value.clone())).collect()
            }
            _ => Map::new(),
        };
        Self {
            word: fields.get("status").and_then(Value::as_str).and_then(|word| word.parse().ok()),
            message: text("message"),
            epoch: count("epoch"),
            max_epoch: count("max_epoch"),
            cur_iter: count("cur_iter"),
            eta: text("eta"),
            time_per_epoch: text("time_per_epoch"),
            time_per_iter: text("time_per_iter"),
            key_metric: fields.get("key_metric").and_then(Value::as_f64),
            metrics,
            clock: text("date").zip(text("time")).and_then(|(date, time)| clock(&date, &time)),
        }
    }
}

/// Parses TAO's `date` (`M/D/YYYY`) and `time` (`H:M:S`), both without padding.
fn clock(date: &str, time: &str) -> Option<i64> {
    let numbers = |text: &str, by: char| -> Option<[u32; 3]> {
        let numbers: Vec<u32> = text.split(by).map(|part| part.trim().parse().ok()).collect::<Option<_>>()?;
        numbers.try_into().ok()
    };
    let [month, day, year] = numbers(date, '/')?;
    let [hour, minute, second] = numbers(time, ':')?;
    let at =
        NaiveDate::from_ymd_opt(i32::try_from(year).ok()?, month, day)?.and_hms_opt(hour, minute, second)?;
    Some(at.and_utc().timestamp())
}

fn is_metric(key: &str, value: &Value) -> bool {
    value.is_number() && key.chars().count() <= 100 && !key.chars().any(char::is_control)
}

/// Replaces NaN and ±Infinity outside of strings by null.
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

/// The text without control characters, cut: Postgres stores no NUL, and a terminal executes escape sequences.
fn plain(text: &str) -> String {
    let mut plain: String =
        text.chars().take(MAX_TEXT).map(|c| if c.is_control() { '\u{fffd}' } else { c }).collect();
    if text.chars().nth(MAX_TEXT).is_some() {
        plain.push('…');
    }
    plain
}

fn shorten(value: &mut Value) {
    if let Value::String(text) = value {
        *text = plain(text);
    }
}

/// The value without NUL, which Postgres does not store.
fn storable(value: Value) -> Value {
    let text = |text: String| if text.contains('\0') { text.replace('\0', "\u{fffd}") } else { text };
    match value {
        Value::String(string) => Value::String(text(string)),
        Value::Array(values) => values.into_iter().map(storable).collect(),
        Value::Object(fields) => {
            fields.into_iter().map(|(key, value)| (text(key), storable(value))).collect::<Map<_, _>>().into()
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => value,
    }
}

#[cfg(test)]
mod tests;
