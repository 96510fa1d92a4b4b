//! Faults in the shape of a document: fields that nobody knows, values of the wrong type, text that cannot be
//! stored. A fault never repeats a value: it may be a secret.

use domain::Violation;
use serde::de::DeserializeOwned;
use serde_json::Value;
use serde_path_to_error::{Path, Segment};

use super::{below, fault};

/// How many faults one answer lists.
const MOST: usize = 50;

/// Reads the value in the document.
///
/// serde stops at the first fault. The faulty field is taken out and the rest read again, so that a caller
/// learns of all of them at once.
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

/// Writes the number at fault without its fraction of nothing; false when that is not the fault. JSON has one kind of
/// number, in which `4.0` is whole, and some clients write each so. What stays a document keeps it as it was sent.
fn make_whole(document: &mut Value, error: &serde_path_to_error::Error<serde_json::Error>) -> bool {
    let text = error.inner().to_string();
    if !text.starts_with("invalid type: floating point") || !text.contains(", expected u") {
        return false;
    }
    let Some(number) = document.pointer_mut(&exact_pointer(error.path())) else { return false };
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a whole number below 2^53")]
    let whole = number
        .as_f64()
        .filter(|number| number.fract() == 0.0 && (0.0..9_007_199_254_740_992.0).contains(number))
        .map(|number| number as u64);
    whole.is_some_and(|whole| {
        *number = whole.into();
        true
    })
}

/// Removes a field; false when there is no field to remove. Elements of an array stay: the pointers of those
/// behind them would no longer be the caller's.
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

/// The same for a person.
fn pointer(path: &Path) -> String {
    path.iter().fold(String::new(), |parent, segment| match segment {
        Segment::Seq { index } => below(&parent, &index.to_string()),
        Segment::Map { key } => below(&parent, key),
        Segment::Enum { .. } | Segment::Unknown => parent,
    })
}

/// The fault in our words: serde's name the value and Rust's types.
fn explain(error: &serde_path_to_error::Error<serde_json::Error>, document: &Value) -> Violation {
    let at = pointer(error.path());
    let text = error.inner().to_string();
    let expected = text.split_once(", expected ").map(|(_, expected)| expected);
    if text.starts_with("unknown field ") {
        if at == "/backend_details/slurm_metadata" {
            return fault(at, "unknown_field", "is output only: leave it out of a request");
        }
        let known = expected.map_or("none", |known| known.trim_start_matches("one of "));
        return fault(at, "unknown_field", format_args!("is not a field here; the known fields are {known}"));
    }
    if let Some(field) = text.strip_prefix("missing field `").and_then(|rest| rest.strip_suffix('`')) {
        return fault(below(&at, field), "required", "is required");
    }
    if text.starts_with("unknown variant ") {
        let known = expected.unwrap_or_default().trim_start_matches("one of ");
        return fault(at, "invalid", format_args!("must be {known}"));
    }
    let given = document.pointer(&at).map_or("nothing", kind_of);
    match expected {
        Some(expected) => fault(at, "wrong_type", format_args!("must be {}, not {given}", plain(expected))),
        // Only the parser of a UUID speaks in its own words, and only about characters.
        None if text.starts_with("UUID parsing failed") => {
            fault(at, "invalid", "must be a UUID such as 01890a5d-ac96-774b-bcce-b302099a8057")
        }
        None => fault(at, "invalid", "has a value that is not acceptable here"),
    }
}

fn kind_of(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "a boolean",
        Value::Number(_) => "this number",
        Value::String(_) => "this text",
        Value::Array(_) => "an array",
        Value::Object(_) => "an object",
    }
}

fn plain(expected: &str) -> &str {
    match expected {
        "a map" | "map" => "an object",
        "a sequence" => "an array",
        "a string" | "string or map" => "a text",
        "a boolean" => "true or false",
        "u32" => "a whole number from 0 to 4294967295",
        "u64" => "a whole number from 0",
        "f64" => "a number",
        other if other.contains("UUID") => "a text that is a UUID",
        other if other.starts_with("struct ") => "an object",
        other => other,
    }
}

/// Text with a NUL: neither Postgres nor any file name or environment on the cluster takes one.
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
            found.push(fault(at.to_owned(), "invalid", "must not contain NUL (\\u0000)"));
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
                    found.push(fault(at.clone(), "invalid", "has a name that contains NUL (\\u0000)"));
                }
                look_for_nul(item, &at, found);
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

#[cfg(test)]
mod tests;
