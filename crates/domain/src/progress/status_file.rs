//! One line of TAO's `status.json`: JSON Lines that the container appends while it runs.

use std::fmt;

use chrono::NaiveDate;
use serde::{
    Deserializer,
    de::{MapAccess, Visitor},
};
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
    pub max_iter: Option<u64>,
    pub eta: Option<String>,
    pub time_per_epoch: Option<String>,
    pub time_per_iter: Option<String>,
    /// Null for a value that is null or not finite.
    pub key_metric: Option<Value>,
    /// Null for a value that is not finite.
    pub metrics: Map<String, Value>,
    /// The names of metrics that are null: some loggers write NaN so.
    pub nulls: Vec<String>,
    /// The job's own `date` and `time`, in seconds since 1970 as if in UTC: only differences between lines are meaningful.
    pub clock: Option<i64>,
}

/// The most metrics of a job. A detector may have several for each of its classes, 80 with COCO.
pub(crate) const MAX_METRICS: usize = 200;
/// A longer line, in bytes, is read up to here: TAO writes large tables last.
const MAX_LINE: usize = 128 * 1024;
/// The event of a longer line, in bytes, contains only its plain fields.
const MAX_EVENT: usize = 16 * 1024;
/// The most of these fields.
const MAX_FIELDS: usize = 64;
const MAX_TEXT: usize = 2000;

/// A line as it stands in the file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Text<'a> {
    /// Without its newline.
    Whole(&'a [u8]),
    /// The beginning of a line that is too long.
    Start(&'a [u8]),
}

/// The lines of some bytes.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Cut<'a> {
    /// Where each begins, and its text.
    pub(crate) lines: Vec<(usize, Text<'a>)>,
    /// The size of what was read. The rest is an incomplete line, to be read again.
    pub(crate) taken: usize,
    /// The bytes end within a line that is too long. It is among the lines already.
    pub(crate) skipping: bool,
}

/// Splits bytes into lines. `skipping`: they begin within a line that is too long.
///
/// NULs before a line are no part of it: a file that was extended, or truncated while it was open, has a hole there. NULs
/// at the end may be bytes that a file system does not show yet, unless there are very many.
pub(crate) fn cut(bytes: &[u8], mut skipping: bool) -> Cut<'_> {
    let (mut lines, mut begin) = (Vec::new(), 0);
    loop {
        let hole = if skipping { 0 } else { nuls(&bytes[begin..]) };
        if begin + hole == bytes.len() {
            let taken = if hole > MAX_LINE || skipping { bytes.len() } else { begin };
            return Cut { lines, taken, skipping };
        }
        begin += hole;
        let rest = &bytes[begin..];
        let length = rest.iter().position(|byte| *byte == b'\n');
        let is_long = length.unwrap_or(rest.len()) > MAX_LINE;
        match (skipping, is_long, length) {
            (true, ..) => {}
            (false, true, _) => lines.push((begin, Text::Start(&rest[..MAX_LINE]))),
            (false, false, Some(length)) => lines.push((begin, Text::Whole(&rest[..length]))),
            (false, false, None) => return Cut { lines, taken: begin, skipping },
        }
        let Some(length) = length else { return Cut { lines, taken: bytes.len(), skipping: true } };
        skipping = false;
        begin += length + 1;
    }
}

/// The number of NULs at the beginning.
pub(crate) fn nuls(bytes: &[u8]) -> usize {
    bytes.iter().take_while(|byte| **byte == 0).count()
}

/// Parses the complete lines in `bytes`, and returns their size. Lines that are not JSON objects are skipped.
pub fn read_lines(bytes: &[u8]) -> (Vec<StatusLine>, usize) {
    let cut = cut(bytes, false);
    (cut.lines.iter().filter_map(|(_, text)| read_line(*text)?.0).collect(), cut.taken)
}

/// Parses a line: its content if it is a JSON object, and the data of its event. `None` for an empty line.
pub(crate) fn read_line(text: Text<'_>) -> Option<(Option<StatusLine>, Value)> {
    let (bytes, is_whole) = match text {
        Text::Whole(bytes) => (bytes, true),
        Text::Start(bytes) => (bytes, false),
    };
    if is_whole && bytes.iter().all(u8::is_ascii_whitespace) {
        return None;
    }
    let Some((line, mut fields)) = object(bytes, is_whole) else {
        let shown = if is_whole { bytes } else { b"a line that is too long" };
        return Some((None, unreadable(shown)));
    };
    if bytes.len() > MAX_EVENT {
        fields.retain(|_, value| !value.is_object() && !value.is_array());
        fields.values_mut().for_each(shorten);
        // A long line may also have many small fields.
        if fields.len() > MAX_FIELDS {
            fields = fields.into_iter().take(MAX_FIELDS).collect();
        }
        let key = if is_whole { "truncated_from_bytes" } else { "longer_than_bytes" };
        fields.insert(key.to_owned(), bytes.len().into());
    }
    Some((Some(line), storable(Value::Object(fields))))
}

/// The event data of a line that could not be parsed.
pub(crate) fn unreadable(text: &[u8]) -> Value {
    let start: String = String::from_utf8_lossy(&text[..text.len().min(1000)]).chars().take(200).collect();
    json!({ "unreadable": plain(&start) })
}

/// In place of NaN: a [`metric`] that is null, and no number or text.
const NOT_FINITE: &str = r#"{"value":"NaN"}"#;

/// The content of a JSON object, and its fields.
fn object(text: &[u8], is_whole: bool) -> Option<(StatusLine, Map<String, Value>)> {
    if let Some(fields) = serde_json::from_slice(text).ok().filter(|_| is_whole) {
        return Some((StatusLine::from(&fields), fields));
    }
    // Python writes NaN and Infinity, which are not JSON. The rest of such a line is still useful.
    let text = String::from_utf8_lossy(text);
    let parse =
        |text: String| if is_whole { serde_json::from_str(&text).ok() } else { fields_of_start(&text) };
    Some((
        StatusLine::from(&parse(without_nan(&text, |_| NOT_FINITE.to_owned()))?),
        parse(without_nan(&text, |_| "null".to_owned()))?,
    ))
}

/// The complete fields at the beginning of a JSON object; `None` if there are none.
fn fields_of_start(text: &str) -> Option<Map<String, Value>> {
    struct Collect<'a>(&'a mut Map<String, Value>);
    impl<'de> Visitor<'de> for Collect<'_> {
        type Value = ();

        fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
            formatter.write_str("an object")
        }

        fn visit_map<A: MapAccess<'de>>(self, mut fields: A) -> Result<(), A::Error> {
            while let Some((key, value)) = fields.next_entry()? {
                self.0.insert(key, value);
            }
            Ok(())
        }
    }
    let mut fields = Map::new();
    // The error is the end of the text.
    let _ = serde_json::Deserializer::from_str(text).deserialize_map(Collect(&mut fields));
    (!fields.is_empty()).then_some(fields)
}

impl From<&Map<String, Value>> for StatusLine {
    fn from(fields: &Map<String, Value>) -> Self {
        let text = |key| match fields.get(key)? {
            Value::String(text) => Some(plain(text)),
            Value::Number(number) => Some(number.to_string()),
            Value::Null | Value::Bool(_) | Value::Array(_) | Value::Object(_) => None,
        };
        let count = |key| fields.get(key).and_then(count);
        let (mut metrics, mut nulls) = (Map::new(), Vec::new());
        for group in [fields.get("kpi"), fields.get("graphical")].into_iter().flatten() {
            for (key, value) in group.as_object().into_iter().flatten() {
                if is_null(value) {
                    nulls.push(key.clone());
                } else if metrics.len() < MAX_METRICS
                    && is_name(key)
                    && !metrics.contains_key(key)
                    && let Some(value) = metric(value)
                {
                    metrics.insert(key.clone(), value);
                }
            }
        }
        Self {
            word: fields.get("status").and_then(Value::as_str).and_then(|word| word.parse().ok()),
            message: text("message"),
            epoch: count("epoch"),
            max_epoch: count("max_epoch"),
            // Trainers of Hugging Face count steps.
            cur_iter: count("cur_iter").or(count("step")),
            max_iter: count("max_step"),
            eta: text("eta"),
            time_per_epoch: text("time_per_epoch"),
            time_per_iter: text("time_per_iter"),
            key_metric: fields.get("key_metric").and_then(metric_or_null),
            metrics,
            nulls,
            clock: text("date").zip(text("time")).and_then(|(date, time)| clock(&date, &time)),
        }
    }
}

/// A number, written as one or as text: Python's loggers do both. Not finite for NaN and infinity.
pub(super) fn number(value: &Value) -> Option<f64> {
    match value {
        Value::Number(number) => number.as_f64(),
        Value::String(text) => text.trim().parse().ok(),
        Value::Bool(one) => Some(f64::from(u8::from(*one))),
        Value::Null | Value::Array(_) | Value::Object(_) => None,
    }
}

/// Whole epochs or iterations: `2.67` epochs are two.
fn count(value: &Value) -> Option<u64> {
    // JavaScript clients do not represent larger integers exactly.
    const MAX: f64 = 9_007_199_254_740_991.0;
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "the range is checked")]
    number(value).filter(|number| (0.0..=MAX).contains(number)).map(|number| number as u64)
}

/// The value of a metric: a number, alone or as `{"value": …}`. Null if it is not finite. `None` for anything else.
fn metric(value: &Value) -> Option<Value> {
    match value {
        Value::Object(fields) => metric(fields.get("value")?),
        Value::Number(_) => Some(value.clone()),
        Value::Null | Value::Bool(_) | Value::String(_) | Value::Array(_) => number(value).map(Value::from),
    }
}

/// The same, and null for a metric that is null.
pub(super) fn metric_or_null(value: &Value) -> Option<Value> {
    if is_null(value) { Some(Value::Null) } else { metric(value) }
}

/// Whether a metric is null, alone or as `{"value": null}`.
fn is_null(value: &Value) -> bool {
    let fields = value.as_object();
    fields.map_or(value.is_null(), |fields| fields.get("value").is_some_and(is_null))
}

pub(super) fn is_name(key: &str) -> bool {
    key.chars().count() <= 100 && !key.chars().any(char::is_control)
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

/// Replaces NaN and ±Infinity outside of strings.
pub(crate) fn without_nan(line: &str, substitute: impl Fn(&str) -> String) -> String {
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
        let taken = bare.map_or(c.len_utf8(), str::len);
        match bare {
            Some(word) => clean.push_str(&substitute(word)),
            None => clean.push(c),
        }
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
mod tao_tests;
#[cfg(test)]
mod tests;
