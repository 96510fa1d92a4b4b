//! Faults in the shape of a body: unknown fields, wrong types, text that cannot be stored. A fault never repeats a value,
//! which may be a secret.

use domain::{Violation, pointer as below};
use serde::de::DeserializeOwned;
use serde_json::Value;
use serde_path_to_error::{Path, Segment};

use crate::http::spelling::nearest;

/// The most faults in one answer.
const MOST: usize = 50;

/// Reads the value.
///
/// serde stops at the first fault. This removes the faulty field and reads the rest again, so that the caller sees all
/// faults at once.
pub(super) fn read<T: DeserializeOwned>(document: &Value) -> Result<T, Vec<Violation>> {
    let mut error = match serde_path_to_error::deserialize(document) {
        Ok(value) => return Ok(value),
        Err(error) => error,
    };
    let mut rest = document.clone();
    let mut found = Vec::new();
    loop {
        if !make_whole(&mut rest, &error) {
            found.push(explain(&error, &rest));
            if found.len() >= MOST || !take_out(&mut rest, error.path()) {
                return Err(found);
            }
        }
        error = match serde_path_to_error::deserialize(&rest) {
            Ok(value) if found.is_empty() => return Ok(value),
            Ok(_) => return Err(found),
            Err(error) => error,
        };
    }
}

/// Replaces a float such as `4.0` by the whole number where one is expected; false if that is not the fault. JSON has one
/// number type, and some clients write all numbers as floats. The stored document keeps the client's spelling.
fn make_whole(document: &mut Value, error: &serde_path_to_error::Error<serde_json::Error>) -> bool {
    let text = error.inner().to_string();
    let is_whole = text.contains(", expected u") || text.contains(", expected i32");
    if !text.starts_with("invalid type: floating point") || !is_whole {
        return false;
    }
    let Some(number) = document.pointer_mut(&exact_pointer(error.path())) else { return false };
    #[expect(clippy::cast_possible_truncation, reason = "a whole number below 2^53")]
    let whole = number
        .as_f64()
        .filter(|number| number.fract() == 0.0 && number.abs() < 9_007_199_254_740_992.0)
        .map(|number| number as i64);
    whole.is_some_and(|whole| {
        *number = whole.into();
        true
    })
}

/// Removes a field; false if the fault is not a field. Array elements stay, because removing one would shift the
/// pointers of those after it.
fn take_out(document: &mut Value, path: &Path) -> bool {
    let mut keys = Vec::new();
    for segment in path {
        match segment {
            Segment::Map { key } => keys.push(key),
            Segment::Enum { .. } => {}
            Segment::Seq { .. } | Segment::Unknown => return false,
        }
    }
    let Some((last, parents)) = keys.split_last() else { return false };
    let mut at = document;
    for key in parents {
        match at.get_mut(key.as_str()) {
            Some(inner) => at = inner,
            None => return false,
        }
    }
    at.as_object_mut().is_some_and(|fields| fields.shift_remove(last.as_str()).is_some())
}

fn exact_pointer(path: &Path) -> String {
    path.iter().fold(String::new(), |parent, segment| match segment {
        Segment::Seq { index } => format!("{parent}/{index}"),
        Segment::Map { key } => format!("{parent}/{}", key.replace('~', "~0").replace('/', "~1")),
        Segment::Enum { .. } | Segment::Unknown => parent,
    })
}

/// The same, shortened for people.
fn pointer(path: &Path) -> String {
    path.iter().fold(String::new(), |parent, segment| match segment {
        Segment::Seq { index } => below(&parent, &index.to_string()),
        Segment::Map { key } => below(&parent, key),
        Segment::Enum { .. } | Segment::Unknown => parent,
    })
}

/// The fault in our words: serde's message contains the value and names of Rust types.
fn explain(error: &serde_path_to_error::Error<serde_json::Error>, document: &Value) -> Violation {
    let at = pointer(error.path());
    let text = error.inner().to_string();
    let expected = text.split_once(", expected ").map(|(_, expected)| expected);
    if text.starts_with("unknown field ") {
        if at == "/backend_details/slurm_metadata" {
            return Violation::new(at, "unknown_field", "is read-only; remove it from the request");
        }
        let known = expected.map_or("none", |known| known.trim_start_matches("one of "));
        let last = error.path().iter().next_back();
        let meant = match last {
            Some(Segment::Map { key }) => nearest(key, known.split('`').skip(1).step_by(2)),
            Some(Segment::Seq { .. } | Segment::Enum { .. } | Segment::Unknown) | None => None,
        };
        let detail = match meant {
            Some(meant) => format!("is not a known field (did you mean `{meant}`?)"),
            None => format!("is not a known field; the known fields are {known}"),
        };
        return Violation::new(at, "unknown_field", detail);
    }
    if let Some(field) = text.strip_prefix("missing field `").and_then(|rest| rest.strip_suffix('`')) {
        return Violation::new(below(&at, field), "required", "is required");
    }
    if text.starts_with("unknown variant ") {
        let known = expected.unwrap_or_default().trim_start_matches("one of ");
        return Violation::new(at, "invalid", format_args!("must be {known}"));
    }
    let given = document.pointer(&at).map_or("nothing", kind_of);
    match expected {
        Some(expected) => {
            Violation::new(at, "wrong_type", format_args!("must be {}, not {given}", plain(expected)))
        }
        // Only the UUID parser's message lacks an expectation.
        None if text.starts_with("UUID parsing failed") => {
            Violation::new(at, "invalid", "must be a UUID such as 01890a5d-ac96-774b-bcce-b302099a8057")
        }
        None => Violation::new(at, "invalid", "has an invalid value"),
    }
}

fn kind_of(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "a boolean",
        Value::Number(_) => "this number",
        Value::String(_) => "this string",
        Value::Array(_) => "an array",
        Value::Object(_) => "an object",
    }
}

fn plain(expected: &str) -> &str {
    match expected {
        "a map" | "map" => "an object",
        "a sequence" => "an array",
        "a string" | "string or map" => "a string",
        "a boolean" => "true or false",
        "u32" => "a whole number from 0 to 4294967295",
        "i32" => "a whole number from -2147483648 to 2147483647",
        "u64" => "a whole number from 0",
        "f64" => "a number",
        other if other.contains("UUID") => "a string with a UUID",
        other if other.starts_with("struct ") => "an object",
        other => other,
    }
}

/// Strings with NUL, which Postgres, file names and environments cannot hold.
pub(super) fn in_text(document: &Value) -> Vec<Violation> {
    let mut found = Vec::new();
    look_for_nul(document, "", &mut found);
    found
}

fn look_for_nul(value: &Value, at: &str, found: &mut Vec<Violation>) {
    if found.len() >= MOST {
        return;
    }
    match value {
        Value::String(text) if text.contains('\0') => {
            found.push(Violation::new(at.to_owned(), "invalid", "must not contain NUL (\\u0000)"));
        }
        Value::Array(items) => {
            for (index, item) in items.iter().enumerate() {
                look_for_nul(item, &below(at, &index.to_string()), found);
            }
        }
        Value::Object(fields) => {
            for (key, item) in fields {
                let at = below(at, key);
                if key.contains('\0') {
                    found.push(Violation::new(
                        at.clone(),
                        "invalid",
                        "has a name that contains NUL (\\u0000)",
                    ));
                }
                look_for_nul(item, &at, found);
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

#[cfg(test)]
mod tests;
